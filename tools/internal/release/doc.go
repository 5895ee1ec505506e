// Package release makes everything that a release consists of, in one folder, and
// says what a person has to push. It changes nothing but that folder and a branch of
// its own in the repository, and pushes nothing.
//
// The branch holds one commit on top of the one that is checked out: the modules
// require each other at the version (package gomodules says why that is a commit of
// its own), and the Helm chart and the manifests name it. The commit has the time of
// the one below, so that a second run makes the same commit and the same bytes.
//
// Weighed against goreleaser v2.15: it brings hundreds of modules, and the commit and the
// tags of several modules would still be made here.
package release

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jobpolicy.dev/tools/internal/checkout"
	"jobpolicy.dev/tools/internal/gomodules"
	"jobpolicy.dev/tools/internal/ociimage"
)

// Release is a version to make.
type Release struct {
	// Root is the top folder of a clean git checkout.
	Root string
	// Version is v1.2.3, or v1.2.3-rc.1.
	Version string
	// Out is the folder to make; it must not be there.
	Out string
	// Repository is the registry, and folder in it, that the images go to.
	Repository string
	// Platforms are those of the images.
	Platforms []v1.Platform
	// PluginPlatforms are those of kubectl jobpolicy.
	PluginPlatforms []v1.Platform
	// Downloads is the URL below which the archives of kubectl jobpolicy are
	// published: Downloads/VERSION/FILE.
	Downloads string
	// Log is told what is being done.
	Log io.Writer
}

// Branch is the name of the branch that holds the commit of the release.
func (r Release) Branch() string { return "release-" + r.Version }

// Make checks, builds and writes the release.
func (r Release) Make(ctx context.Context) error {
	if err := r.Check(ctx); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "jobpolicy-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return err
	}
	state, err := checkout.Read(ctx, r.Root)
	if err != nil {
		return err
	}
	proxy := &gomodules.Proxy{Dir: filepath.Join(r.Out, "modules"), Cache: filepath.Join(scratch, "cache"), Time: state.Time}
	clone := filepath.Join(scratch, "source")
	steps := []struct {
		name string
		run  func() error
	}{
		{"commit: modules, chart and manifests at " + r.Version, func() error { return r.commit(ctx, clone, proxy, state.Time) }},
		{"build every published module from its version", func() error { return buildModules(ctx, clone, proxy) }},
		{"images", func() error { return r.images(ctx, clone, proxy, state) }},
		{"kubectl jobpolicy", func() error { return r.kubectlPlugin(ctx, clone, proxy, state) }},
		{"playground", func() error { return r.browserPlayground(ctx, clone, proxy, state) }},
		{"chart, manifests and notes", func() error { return r.documents(clone, state.Time) }},
		{"what to push", func() error { return r.instructions(ctx, clone) }},
		{"checksums", func() error { return writeSums(r.Out) }},
	}
	for _, step := range steps {
		fmt.Fprintln(r.Log, "release:", step.name)
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// images builds the images from the commit of the release.
func (r Release) images(ctx context.Context, clone string, proxy *gomodules.Proxy, base checkout.State) error {
	source, err := r.source(ctx, clone, proxy, base)
	if err != nil {
		return err
	}
	return source.WriteAll(ctx, filepath.Join(r.Out, "images"), r.Repository, r.Platforms, r.Log)
}

// kubectlPlugin builds the plugin from the commit of the release.
func (r Release) kubectlPlugin(ctx context.Context, clone string, proxy *gomodules.Proxy, base checkout.State) error {
	source, err := r.source(ctx, clone, proxy, base)
	if err != nil {
		return err
	}
	return r.plugin(ctx, source)
}

// browserPlayground builds the playground from the commit of the release.
func (r Release) browserPlayground(ctx context.Context, clone string, proxy *gomodules.Proxy, base checkout.State) error {
	source, err := r.source(ctx, clone, proxy, base)
	if err != nil {
		return err
	}
	return r.playground(ctx, source)
}

// source is the commit of the release, with its modules at their version.
func (r Release) source(ctx context.Context, clone string, proxy *gomodules.Proxy, base checkout.State) (ociimage.Source, error) {
	state, err := checkout.Read(ctx, clone)
	if err != nil {
		return ociimage.Source{}, err
	}
	env, err := proxy.Env(ctx)
	return ociimage.Source{
		Dir: clone, Version: r.Version, Revision: state.Revision(), Time: base.Time, Env: append(env, "GOFLAGS=-mod=readonly -modcacherw"),
	}, err
}
