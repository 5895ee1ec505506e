// Command upstreamdiff prints what changed between two releases of Kubernetes in what
// this repository follows, each change beside the file here that follows it.
//
//	upstreamdiff [-C dir] [-v] FROM TO
//
// FROM and TO are versions of k8s.io/kubernetes, such as v1.36.3 and v1.37.2. The go command
// finds the sources in the module cache or downloads them. follow.go has the list of what is
// followed. -v also prints the lines that changed.
//
// The comparison is of declarations, without comments: a line per function, field, gate, rule
// or test that was added (+), removed (-) or changed (~). Exit status: 0 when the report was
// made, whatever it says; 1 when it could not be made; 2 when the command line is wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("upstreamdiff", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("C", ".", "the top `folder` of the repository")
	verbose := flags.Bool("v", false, "print the lines that changed, too")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if err := checkVersions(flags.Args()); err != nil {
		fmt.Fprintln(stderr, "upstreamdiff:", err)
		return 2
	}
	sources := sources{dirs: map[string]string{}}
	for _, area := range followed {
		before, err := sources.declarations(ctx, area, flags.Arg(0))
		if err == nil {
			var after map[string]declaration
			if after, err = sources.declarations(ctx, area, flags.Arg(1)); err == nil {
				report(stdout, *root, area, compare(before, after), *verbose)
			}
		}
		if err != nil {
			fmt.Fprintf(stderr, "upstreamdiff: %s: %v\n", area.title, err)
			return 1
		}
	}
	return 0
}

var versionForm = regexp.MustCompile(`^v1\.\d+\.\d+(-[0-9a-z.]+)?$`)

func checkVersions(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("got %d arguments, expected two versions: FROM and TO, such as v1.36.3 v1.37.2", len(args))
	}
	for _, v := range args {
		if !versionForm.MatchString(v) {
			return fmt.Errorf("%q is no version of Kubernetes; expected one such as v1.36.3", v)
		}
	}
	return nil
}

// sources finds modules. It asks the go command for each of them once.
type sources struct {
	// dirs are the folders of modules, by module@version.
	dirs map[string]string
}

// dir is the folder of a module's source as of a release of Kubernetes. All modules but
// k8s.io/kubernetes itself have v0 in the place of v1.
func (s sources) dir(ctx context.Context, module, kubernetes string) (string, error) {
	version := kubernetes
	if module != "k8s.io/kubernetes" {
		version = "v0" + strings.TrimPrefix(kubernetes, "v1")
	}
	query := module + "@" + version
	if dir := s.dirs[query]; dir != "" {
		return dir, nil
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", query)
	cmd.Dir = os.TempDir() // Outside of any module and workspace.
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if parseErr := json.Unmarshal(out, &answer); parseErr != nil {
		return "", fmt.Errorf("go mod download %s: %w", query, errors.Join(err, parseErr))
	}
	if answer.Error != "" || err != nil {
		return "", fmt.Errorf("go mod download %s: %w", query, errors.Join(err, errors.New(answer.Error)))
	}
	s.dirs[query] = answer.Dir
	return answer.Dir, nil
}

// declarations are those of an area in a release. An area that the release does not have yet,
// or no more, has none.
func (s sources) declarations(ctx context.Context, a area, kubernetes string) (map[string]declaration, error) {
	dir, err := s.dir(ctx, a.module, kubernetes)
	if err != nil {
		return nil, err
	}
	found := map[string]declaration{}
	for _, pattern := range a.files {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if err := parse(path, filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))), a, found); err != nil {
				return nil, err
			}
		}
	}
	if a.reachableFrom != "" {
		keepReachable(found, a.reachableFrom)
	}
	return found, nil
}
