package release

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"jobpolicy.dev/tools/internal/checkout"
	"jobpolicy.dev/tools/internal/gomodules"
)

// The places of the chart's version.
const (
	chartDir  = "deploy/chart/jobpolicy"
	chartFile = chartDir + "/Chart.yaml"
)

// commit makes the commit of the release in a clone of the repository, and the
// branch that holds it in the repository.
func (r Release) commit(ctx context.Context, clone string, proxy *gomodules.Proxy, when time.Time) error {
	if _, err := checkout.Git(ctx, r.Root, "clone", "--quiet", "--shared", r.Root, clone); err != nil {
		return err
	}
	if err := r.setChartVersion(ctx, clone); err != nil {
		return err
	}
	if err := gomodules.Pin(ctx, clone, r.Version, proxy); err != nil {
		return err
	}
	if err := r.record(ctx, clone, when); err != nil {
		return err
	}
	_, err := checkout.Git(ctx, r.Root, "fetch", "--quiet", "--no-tags", clone, "+HEAD:refs/heads/"+r.Branch())
	return err
}

// record commits what stands in the index of the clone, in the name that the
// repository commits under and at a time that does not pass.
func (r Release) record(ctx context.Context, clone string, when time.Time) error {
	var who [2]string
	for i, key := range []string{"user.name", "user.email"} {
		value, err := checkout.Git(ctx, r.Root, "config", key)
		if err != nil {
			return fmt.Errorf("git config %s is needed for the commit: %w", key, err)
		}
		who[i] = value
	}
	date := when.Format(time.RFC3339)
	cmd := exec.CommandContext(ctx, "git", "-c", "user.name="+who[0], "-c", "user.email="+who[1],
		"commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", "Release "+r.Version)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git commit: %w\n%s", err, out)
	}
	return nil
}

var (
	versionLine    = regexp.MustCompile(`(?m)^version: .*$`)
	appVersionLine = regexp.MustCompile(`(?m)^appVersion: .*$`)
	repositoryLine = regexp.MustCompile(`(?m)^  repository: .*$`)
)

// setChartVersion writes version and registry into the chart, and the manifests that
// follow from it.
func (r Release) setChartVersion(ctx context.Context, clone string) error {
	edits := []struct {
		file string
		line *regexp.Regexp
		text string
	}{
		{chartFile, versionLine, "version: " + strings.TrimPrefix(r.Version, "v")},
		{chartFile, appVersionLine, "appVersion: " + r.Version},
		{chartDir + "/values.yaml", repositoryLine, "  repository: " + r.Repository},
	}
	for _, e := range edits {
		name := filepath.Join(clone, e.file)
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if found := e.line.FindAllIndex(data, -1); len(found) != 1 {
			return fmt.Errorf("%s: %d lines like %s, want 1", e.file, len(found), e.line)
		}
		if err := os.WriteFile(name, e.line.ReplaceAllLiteral(data, []byte(e.text)), 0o644); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./cmd/manifests", clone)
	cmd.Dir = filepath.Join(clone, "tools/chart")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("manifests: %w\n%s", err, out)
	}
	return nil
}

// buildModules builds each published module by itself, against the others at their
// version.
func buildModules(ctx context.Context, clone string, proxy *gomodules.Proxy) error {
	for _, dir := range gomodules.Published {
		if err := proxy.Go(ctx, filepath.Join(clone, dir), "build", "-trimpath", "./..."); err != nil {
			return err
		}
	}
	changes, err := checkout.Git(ctx, clone, "status", "--porcelain")
	if err == nil && changes != "" {
		err = fmt.Errorf("building changed what was committed: %s", changes)
	}
	return err
}
