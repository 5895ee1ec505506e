package main

import (
	"io"

	"jobpolicy.dev/deploy/local/internal/containernode"
	"jobpolicy.dev/deploy/local/internal/imageregistry"
)

const imageRegistryAbout = `Tells containerd which images it has when it asks a registry for them. "up --node=containers" starts it.`

func runImageRegistry(args []string, stderr io.Writer) error {
	flags := newFlags("image-registry", imageRegistryAbout, stderr)
	address := flags.String("address", "127.0.0.1:5000", "`host:port` to listen on")
	socket := flags.String("containerd", containernode.Socket, "socket `file` of containerd")
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	ctx, stop := signalContext()
	defer stop()
	return imageregistry.Run(ctx, *address, *socket)
}
