// Package checkout says which state of the source a build is made from.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// State is the state of a checkout.
type State struct {
	// Commit is the full hash of the commit that is checked out.
	Commit string
	// Time is when that commit was made, in UTC. Builds of the commit take it for
	// the time, so that they come out the same whenever they are made.
	Time time.Time
	// Modified says that files differ from the commit, or that there are new ones
	// that git does not ignore.
	Modified bool
}

// Revision is the commit, marked if the files are not those of the commit.
func (s State) Revision() string {
	if s.Modified {
		return s.Commit + "-dirty"
	}
	return s.Commit
}

// Read asks git about the checkout in dir.
func Read(ctx context.Context, dir string) (State, error) {
	out, err := Git(ctx, dir, "log", "-1", "--format=%H %ct")
	if err != nil {
		return State{}, err
	}
	commit, seconds, _ := strings.Cut(out, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return State{}, fmt.Errorf("git log in %s: time of the commit: %w", dir, err)
	}
	changes, err := Git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return State{}, err
	}
	return State{Commit: commit, Time: time.Unix(unix, 0).UTC(), Modified: changes != ""}, nil
}

// Git runs git in dir and returns what it prints, without the white space around
// it. The error has what git says.
func Git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s in %s: %s", args[0], dir, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w", args[0], dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}
