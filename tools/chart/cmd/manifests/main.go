// Manifests writes the manifests of deploy/kubernetes, of the Helm chart in
// deploy/chart/jobpolicy. It takes the top folder of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"jobpolicy.dev/tools/chart"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER: the top folder of the repository")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	for _, v := range chart.Variants() {
		text, err := v.Manifests(filepath.Join(root, "deploy/chart/jobpolicy"))
		if err != nil {
			return fmt.Errorf("%s: %w", v.Dir, err)
		}
		file := filepath.Join(root, "deploy/kubernetes", v.Dir, "jobpolicy.yaml")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
