// Command licenses checks that every module that a released program links has a license text, on
// each platform that the program is released for. With -o it writes the texts of the playground to
// a folder; images and archives get theirs when they are made.
//
//	licenses [-C dir] [-o dir]
//
// Exit status: 0 when all have one, 1 when one has not, 2 when the command line is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"jobpolicy.dev/tools/internal/licenses"
	"jobpolicy.dev/tools/internal/ociimage"
	"jobpolicy.dev/tools/internal/release"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("licenses", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("C", ".", "the top `folder` of the repository")
	out := flags.String("o", "", "the `folder` to write the texts of the playground to; empty: only check all programs")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	source := ociimage.Source{Dir: *dir}
	var err error
	if *out != "" {
		err = write(ctx, source, *out)
	} else {
		err = check(ctx, source, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "licenses:", err)
		return 1
	}
	return 0
}

// check looks for the texts of all that is released.
func check(ctx context.Context, source ociimage.Source, stdout io.Writer) error {
	var all []licenses.Text
	var failed []error
	add := func(texts []licenses.Text, err error) {
		all, failed = licenses.Join(all, texts), append(failed, err)
	}
	for _, platform := range ociimage.DefaultPlatforms() {
		for _, p := range ociimage.Programs() {
			add(source.ImageLicenses(ctx, p, platform))
		}
	}
	for _, platform := range release.PluginPlatforms() {
		add(source.Licenses(ctx, release.PluginProgram, platform))
	}
	add(source.Licenses(ctx, release.PlaygroundProgram, release.PlaygroundPlatform))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d license texts\n", len(all))
	return nil
}

func write(ctx context.Context, source ociimage.Source, out string) error {
	texts, err := source.Licenses(ctx, release.PlaygroundProgram, release.PlaygroundPlatform)
	if err != nil {
		return err
	}
	for _, text := range texts {
		name := filepath.Join(out, text.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, text.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
