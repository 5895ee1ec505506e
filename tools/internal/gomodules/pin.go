package gomodules

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"jobpolicy.dev/tools/internal/checkout"
)

// Pin changes the go.mod and go.sum files in root, the top folder of a git checkout,
// to those of a release, and packs the published modules into the proxy. The index
// of the checkout then holds the changes; they are not committed.
//
// Each published module gets a copy of the license. Without one, the go command would add it
// to the module that it makes of a tag, and go.sum would have another checksum for it.
//
// Modules that are not published keep their replace lines, and only learn the version.
func Pin(ctx context.Context, root, version string, proxy *Proxy) error {
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, dir := range Published {
		if err := os.WriteFile(filepath.Join(root, dir, "LICENSE"), license, 0o644); err != nil {
			return err
		}
		if err := rewrite(filepath.Join(root, dir, "go.mod"), version, true); err != nil {
			return err
		}
		if err := proxy.Go(ctx, filepath.Join(root, dir), "mod", "tidy"); err != nil {
			return err
		}
		tree, err := snapshot(ctx, root)
		if err != nil {
			return err
		}
		if err := proxy.Add(root, tree, dir, version); err != nil {
			return err
		}
	}
	rest, err := unpublished(root)
	if err != nil {
		return err
	}
	for _, dir := range rest {
		if err := rewrite(filepath.Join(root, dir, "go.mod"), version, false); err != nil {
			return err
		}
	}
	_, err = snapshot(ctx, root)
	return err
}

// snapshot adds every file of the checkout to its index and returns the tree.
func snapshot(ctx context.Context, root string) (string, error) {
	if _, err := checkout.Git(ctx, root, "add", "--all"); err != nil {
		return "", err
	}
	return checkout.Git(ctx, root, "write-tree")
}

// unpublished are the other modules of the workspace.
func unpublished(root string) ([]string, error) {
	name := filepath.Join(root, "go.work")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(name, data, nil)
	if err != nil {
		return nil, err
	}
	var rest []string
	for _, use := range work.Use {
		if dir := strings.TrimPrefix(use.Path, "./"); !slices.Contains(Published, dir) {
			rest = append(rest, dir)
		}
	}
	return rest, nil
}

// rewrite makes a go.mod require the published modules at the version; alone, it also
// takes the lines away that replace ours, and refuses a file that replaces others.
func rewrite(name, version string, alone bool) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(mod.Require) {
		if !slices.Contains(Published, strings.TrimPrefix(r.Mod.Path, prefix)) {
			continue
		}
		if err := mod.AddRequire(r.Mod.Path, version); err != nil {
			return err
		}
	}
	if alone {
		if err := dropReplaces(mod); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	mod.Cleanup()
	text, err := mod.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

func dropReplaces(mod *modfile.File) error {
	for _, r := range slices.Clone(mod.Replace) {
		if !strings.HasPrefix(r.Old.Path, prefix) {
			return fmt.Errorf("it replaces %s: a published module must not, for whoever requires it does not", describe(r.Old))
		}
		if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	return nil
}

func describe(m module.Version) string {
	if m.Version == "" {
		return m.Path
	}
	return m.String()
}
