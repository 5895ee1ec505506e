package hostnode

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// lookPath finds the program that a container's first argument names, as a container runtime does: a name with a slash
// is a path, relative to the working directory; any other is looked for in the directories of the container's PATH.
func lookPath(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if err := executable(file); err != nil {
			return "", fmt.Errorf("exec: %q: %w", name, err)
		}
		return file, nil
	}
	for _, d := range filepath.SplitList(path) {
		file := filepath.Join(d, name)
		if filepath.IsAbs(file) && executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", name)
}

func executable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fs.ErrPermission
	}
	return nil
}
