package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"jobpolicy.dev/deploy/local/cluster"
)

const loadAbout = `Loads container images into a running cluster that was started with --node=containers, by the names
that the files give them. A FILE is a tar archive in OCI layout, or one that "docker save" wrote.
The cluster is the one that KUBECONFIG leads to, unless --state-dir names another.`

func runLoad(args []string, stderr io.Writer) error {
	flags := newFlags("load", loadAbout, stderr)
	stateDir := flags.String("state-dir", "", "`directory` of the cluster (default: that of $KUBECONFIG)")
	nodeBinDir := flags.String("node-bin-dir", "", "`directory` of ctr (default: node in that of this executable)")
	if err := flags.Parse(args); err != nil {
		return usageError{err}
	}
	if flags.NArg() == 0 {
		return usageError{errors.New("load: want a FILE")}
	}
	if *stateDir == "" {
		*stateDir = filepath.Dir(os.Getenv("KUBECONFIG"))
	}
	if *nodeBinDir == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this executable: %w", err)
		}
		*nodeBinDir = filepath.Join(filepath.Dir(self), "node")
	}
	ctx, stop := signalContext()
	defer stop()
	for _, file := range flags.Args() {
		if err := cluster.LoadImage(ctx, *stateDir, *nodeBinDir, file); err != nil {
			return err
		}
	}
	return nil
}
