package main

import (
	"io"
	"log/slog"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/internal/hostnode"
)

const nodeAbout = `Registers a Node and runs the containers of its pods as processes of this machine, as the user
who starts it. It isolates nothing.`

func runNode(args []string, stderr io.Writer) error {
	var debug bool
	var cfg hostnode.Config
	flags := newFlags("node", nodeAbout, stderr)
	flags.StringVar(&cfg.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of the API server")
	flags.StringVar(&cfg.NodeName, "node-name", cluster.DefaultNodeName, "`name` of the Node object")
	flags.StringVar(&cfg.RootDir, "root-dir", "", "`directory` for the pods' files and logs")
	flags.StringVar(&cfg.Address, "address", "127.0.0.1:0", "`host:port` of the API from which the API server reads logs; port 0 is any free one")
	flags.StringVar(&cfg.ServingCertFile, "tls-cert-file", "", "`file` with the certificate of that API")
	flags.StringVar(&cfg.ServingKeyFile, "tls-private-key-file", "", "`file` with its private key")
	flags.StringVar(&cfg.ClientCAFile, "client-ca-file", "", "`file` with the authority of its clients' certificates")
	flags.DurationVar(&cfg.CrashBackoffBase, "crash-backoff-base", 10*time.Second, "delay before a container's second restart; doubles with each further one")
	flags.DurationVar(&cfg.CrashBackoffMax, "crash-backoff-max", 5*time.Minute, "longest delay before a restart")
	flags.Func("container-env", "environment variable `NAME=VALUE` of every container; repeatable", func(line string) error {
		cfg.ContainerEnv = append(cfg.ContainerEnv, line)
		return nil
	})
	flags.IntVar(&cfg.MaxPods, "max-pods", 500, "largest number of pods on the node")
	flags.BoolVar(&debug, "debug", false, "log every step of every pod")
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	cfg.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))

	ctx, stop := signalContext()
	defer stop()
	return hostnode.Run(ctx, cfg)
}
