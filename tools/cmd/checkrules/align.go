package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// alignTries bounds how often align looks again: an upgrade in one module can raise a version that another shares.
const alignTries = 5

// align brings every module of the workspace in dir to the newest version that any of them takes of a shared
// dependency. That is the version which a build in the workspace selects anyhow; afterwards each module says so
// itself, and builds the same outside the workspace. (go work sync means to do this, but passes over a module
// whose build list it cannot edit, without a word.) What the go command prints goes to out.
func align(dir string, out io.Writer) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for range alignTries {
		ws, err := readWorkspace(root)
		if err != nil {
			return err
		}
		lags := lagsIn(ws)
		if len(lags) == 0 {
			return nil
		}
		if err := upgrade(root, lags, out); err != nil {
			return err
		}
	}
	return errors.New("the versions do not settle: an upgrade brings back what another one removes")
}

// upgrade runs one go get and one go mod tidy in each module that lags.
func upgrade(root string, lags []lag, out io.Writer) error {
	wanted := map[string][]string{}
	var dirs []string
	for _, l := range lags {
		if wanted[l.in.dir] == nil {
			dirs = append(dirs, l.in.dir)
		}
		wanted[l.in.dir] = append(wanted[l.in.dir], l.dep+"@"+l.newest.version)
	}
	for _, dir := range dirs {
		if err := goCommand(root, dir, out, append([]string{"get"}, wanted[dir]...)...); err != nil {
			return err
		}
		if err := goCommand(root, dir, out, "mod", "tidy"); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs the go command in one module by itself, outside the workspace.
func goCommand(root, dir string, out io.Writer, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(dir))
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), dir, err)
	}
	return nil
}
