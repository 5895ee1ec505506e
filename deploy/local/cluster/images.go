package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"jobpolicy.dev/deploy/local/internal/containernode"
)

// imagesDir is the directory of Options.NodeBinDir with the images that every
// cluster has.
const imagesDir = "images"

// LoadImage makes the images in a file known to the node, by the names that the
// file gives them. The file is a tar archive in OCI layout, or one that docker
// save wrote.
func (c *Cluster) LoadImage(ctx context.Context, file string) error {
	if !c.enclosed() {
		return errNoImages
	}
	return c.loadImage(ctx, file)
}

var errNoImages = errors.New("load image: this node runs processes, and reads no images")

func (l *layout) loadImage(ctx context.Context, file string) error {
	return loadImage(ctx, l.opts.NodeBinDir, l.inside.first, file)
}

// LoadImage does what [Cluster.LoadImage] does, for a cluster that another
// process has started. nodeBinDir is the directory of ctr.
func LoadImage(ctx context.Context, stateDir, nodeBinDir, file string) error {
	text, err := os.ReadFile(filepath.Join(stateDir, firstFile))
	if err != nil {
		return fmt.Errorf("load image: no cluster with containers runs in %s: %w", stateDir, err)
	}
	first, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("load image: %s: %w", firstFile, err)
	}
	return loadImage(ctx, nodeBinDir, first, file)
}

// loadImage talks to containerd through its socket, which it finds in the file
// system of a process inside. containerd unpacks the image itself.
func loadImage(ctx context.Context, nodeBinDir string, first int, file string) error {
	ctr := exec.CommandContext(ctx, filepath.Join(nodeBinDir, "ctr"),
		"--address="+socketFrom(first), "--namespace=k8s.io", "images", "import", "--all-platforms=false", file)
	output, err := ctr.CombinedOutput()
	if err != nil {
		return fmt.Errorf("load image %s: %w: %s", file, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// socketFrom is the path of containerd's socket as seen from outside.
func socketFrom(first int) string {
	return fmt.Sprintf("/proc/%d/root%s", first, containernode.Socket)
}

// loadFirstImages loads what the options name and what every cluster has.
func (l *layout) loadFirstImages(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(l.opts.NodeBinDir, imagesDir, "*.tar"))
	if err != nil {
		return err
	}
	for _, file := range slices.Concat(files, l.opts.Images) {
		if err := l.loadImage(ctx, file); err != nil {
			return err
		}
	}
	return nil
}
