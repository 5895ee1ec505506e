package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"jobpolicy.dev/deploy/local/internal/perlpi"
)

// hostCommands are what the examples run on a node without containers: the
// commands are those of the host.
var hostCommands = []string{"perl", "python3", "bash", "sh", "sleep"}

// containerEnvironment returns NAME=VALUE lines that the examples need on this
// host, and a function that removes what it made. Perl 5.36.0 fails at more
// than 1000 digits of pi; where it does, the containers get a module that mends
// it, so that the manifests can stay as the documents have them.
func containerEnvironment(ctx context.Context) (environment []string, cleanUp func(), err error) {
	for _, command := range hostCommands {
		if _, err := exec.LookPath(command); err != nil {
			return nil, nil, fmt.Errorf("the examples run commands of this machine, and one is missing: %w", err)
		}
	}
	probe := exec.CommandContext(ctx, "perl", "-Mbignum=bpi", "-e", "print bpi(1001)")
	err = probe.Run()
	if err == nil {
		return nil, func() {}, nil
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		return nil, nil, fmt.Errorf("perl: %w", err)
	}
	dir, err := os.MkdirTemp("", "jobpolicy-perl-")
	if err != nil {
		return nil, nil, err
	}
	cleanUp = func() { os.RemoveAll(dir) }
	if err := os.WriteFile(filepath.Join(dir, perlpi.File), perlpi.Source, 0o644); err != nil {
		cleanUp()
		return nil, nil, err
	}
	return []string{"PERL5OPT=-I" + dir + " -M" + perlpi.Name}, cleanUp, nil
}
