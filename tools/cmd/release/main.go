// Command release makes a release in a folder, and prints what to push.
//
//	release [-C dir] [-o dir] [-repository host/folder] [-platforms linux/amd64,linux/arm64] [-downloads URL] v1.2.3
//	release -check [-C dir] [-o dir] v1.2.3
//
// The second form only says what forbids the release.
//
// Exit status: 0 when it was made, 1 when something forbids it, 2 when the command
// line is wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"jobpolicy.dev/tools/internal/ociimage"
	"jobpolicy.dev/tools/internal/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("C", ".", "the top `folder` of the repository")
	out := flags.String("o", "", "the `folder` to make; empty: bin/release/VERSION in the repository")
	repository := flags.String("repository", "jobpolicy.dev", "the registry, and `folder` in it, that the images go to")
	wanted := flags.String("platforms", "", "comma-separated `list` such as linux/amd64; empty: linux/amd64 and linux/arm64")
	downloads := flags.String("downloads", "https://jobpolicy.dev/releases", "the `URL` below which the archives of kubectl jobpolicy are published, in a folder for the version")
	check := flags.Bool("check", false, "only say what forbids the release")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	platforms, err := ociimage.ParsePlatforms(*wanted)
	if err != nil || flags.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: release [flags] v1.2.3", err)
		return 2
	}
	r, err := newRelease(*dir, *out, flags.Arg(0))
	switch {
	case err != nil:
	case *check:
		err = r.Check(ctx)
	default:
		r.Repository, r.Platforms, r.Log = *repository, platforms, stdout
		r.PluginPlatforms, r.Downloads = release.PluginPlatforms(), *downloads
		err = r.Make(ctx)
	}
	if err != nil {
		fmt.Fprintln(stderr, "release:", err)
		return 1
	}
	return 0
}

// newRelease makes the folders' names absolute, as the go command wants them.
func newRelease(dir, out, version string) (release.Release, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return release.Release{}, err
	}
	if out == "" {
		out = filepath.Join(root, "bin", "release", version)
	}
	out, err = filepath.Abs(out)
	return release.Release{Root: root, Version: version, Out: out}, err
}
