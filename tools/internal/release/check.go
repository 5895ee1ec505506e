package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"jobpolicy.dev/tools/internal/checkout"
	"jobpolicy.dev/tools/internal/gomodules"
)

// Check reports everything that forbids the release.
func (r Release) Check(ctx context.Context) error {
	if err := checkVersion(r.Version); err != nil {
		return err
	}
	var problems []error
	state, err := checkout.Read(ctx, r.Root)
	switch {
	case err != nil:
		return err
	case state.Modified:
		problems = append(problems, errors.New("the checkout has changes that are in no commit: commit them, or git stash"))
	}
	if _, err := r.notes(r.Root); err != nil {
		problems = append(problems, err)
	}
	for _, tag := range r.tags() {
		if found, err := checkout.Git(ctx, r.Root, "tag", "--list", tag); err != nil || found != "" {
			problems = append(problems, errors.Join(fmt.Errorf("the tag %s is there already: a version is released once", tag), err))
		}
	}
	if _, err := os.Stat(r.Out); err == nil {
		problems = append(problems, fmt.Errorf("the folder %s is there already: remove it", r.Out))
	}
	return errors.Join(problems...)
}

func checkVersion(version string) error {
	if semver.Canonical(version) != version || module.IsPseudoVersion(version) || semver.Major(version) > "v1" {
		return fmt.Errorf("the version must be like v0.1.0 or v0.1.0-rc.1, below v2, is %q", version)
	}
	return nil
}

// tags are the git tags of the version: one for the repository, and one for each
// published module.
func (r Release) tags() []string {
	tags := []string{r.Version}
	for _, dir := range gomodules.Published {
		tags = append(tags, gomodules.Tag(dir, r.Version))
	}
	return tags
}

var heading = regexp.MustCompile(`(?m)^## (\S+).*\n`)

// notes is the section of the version in the changelog: the first one that says
// anything.
func (r Release) notes(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	places := heading.FindAllSubmatchIndex(text, -1)
	for i, at := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		body := strings.TrimSpace(string(text[at[1]:end]))
		switch name := string(text[at[2]:at[3]]); {
		case name == r.Version && body != "":
			return body + "\n", nil
		case name != "Unreleased" || body != "":
			return "", fmt.Errorf("CHANGELOG.md: the section %q comes before one for %s: its heading must be %q, and nothing unreleased may be left",
				name, r.Version, "## "+r.Version)
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section %q", "## "+r.Version)
}
