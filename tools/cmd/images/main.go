// Command images makes the container images of both services. It needs no container
// engine.
//
//	images [-C dir] [-o dir] [-version v1.2.3] [-repository host/folder] [-platforms linux/amd64,linux/arm64]
//
// The folder then holds, for each service, an OCI image layout, the same as one file,
// a bill of materials for each platform, and in images.txt the name and digest of
// each. Exit status: 0 when all were made, 1 when one was not, 2 when the command
// line is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jobpolicy.dev/tools/internal/checkout"
	"jobpolicy.dev/tools/internal/ociimage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("C", ".", "the top `folder` of the repository")
	out := flags.String("o", "bin/images", "the `folder` to write to")
	version := flags.String("version", "", "the `version` that is released; empty: a build that is none, with the tag of the manifests")
	repository := flags.String("repository", "jobpolicy.dev", "the registry, and `folder` in it, that the images' names begin with")
	wanted := flags.String("platforms", "", "comma-separated `list` such as linux/amd64; empty: linux/amd64 and linux/arm64")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	platforms, err := ociimage.ParsePlatforms(*wanted)
	if err != nil || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "images:", errors.Join(err, unexpected(flags.Args())))
		return 2
	}
	if err := write(ctx, *dir, *version, *out, *repository, platforms, stdout); err != nil {
		fmt.Fprintln(stderr, "images:", err)
		return 1
	}
	return 0
}

func write(ctx context.Context, dir, version, out, repository string, platforms []v1.Platform, stdout io.Writer) error {
	state, err := checkout.Read(ctx, dir)
	if err != nil {
		return err
	}
	source := ociimage.Source{Dir: dir, Version: version, Revision: state.Revision(), Time: state.Time}
	return source.WriteAll(ctx, out, repository, platforms, stdout)
}

func unexpected(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q", args[0])
}
