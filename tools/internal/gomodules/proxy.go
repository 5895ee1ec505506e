package gomodules

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Proxy is a folder that serves modules to the go command as a module proxy does.
type Proxy struct {
	// Dir is the folder; absolute.
	Dir string
	// Cache is the folder for what Go fetches, so that versions which are not
	// published yet never get into the user's own cache; absolute.
	Cache string
	// Time is when the versions were made.
	Time time.Time
}

// Add packs the module in a folder of a git repository, as it is in the tree or
// commit, with the bytes that the go command would make of a tag there.
func (p *Proxy) Add(root, tree, dir, version string) (err error) {
	versions := filepath.Join(p.Dir, filepath.FromSlash(Path(dir)), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, p.Time})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{version + ".mod": mod, version + ".info": info, "list": []byte(version + "\n")} {
		if err := os.WriteFile(filepath.Join(versions, name), data, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(versions, version+".zip"))
	if err != nil {
		return err
	}
	defer func() {
		if closed := archive.Close(); err == nil {
			err = closed
		}
	}()
	return zip.CreateFromVCS(archive, module.Version{Path: Path(dir), Version: version}, root, tree, dir)
}

// Env makes a go command fetch our modules from the folder, and others from where it
// did before; what the user's cache has of these is not fetched again.
func (p *Proxy) Env(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	cache, remote, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{
		"GOPROXY=file://" + p.Dir + ",file://" + filepath.Join(cache, "cache", "download") + "," + remote,
		"GOMODCACHE=" + p.Cache,
		"GOPRIVATE=", "GONOPROXY=none", "GONOSUMDB=" + prefix + "*",
		// Without cgo, what is compiled to check is what the images are compiled of.
		"GOWORK=off", "CGO_ENABLED=0",
	}, nil
}

// Go runs the go command in a folder, with modules from the proxy.
func (p *Proxy) Go(ctx context.Context, dir string, args ...string) error {
	env, err := p.Env(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), env...), "GOFLAGS=-mod=mod -modcacherw -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, out)
	}
	return nil
}
