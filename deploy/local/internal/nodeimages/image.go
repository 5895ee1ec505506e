package nodeimages

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// Image is an image to make.
type Image struct {
	// Names are what manifests call it.
	Names []string
	// Packages are installed packages, whose files it gets, with those of the
	// packages that they depend on.
	Packages []string
	// Files are further files, by their paths in the image.
	Files map[string]File
	// Env are NAME=VALUE lines of every container's environment.
	Env []string
	// Entrypoint is the command of containers that name none.
	Entrypoint []string
	// Command are its arguments unless a container names some; without an
	// Entrypoint it is the command itself.
	Command []string
}

// searchPath is where containers look for commands.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Names of files in the archive.
const (
	manifestFile = "manifest.json"
	configFile   = "config.json"
	layerFile    = "layer.tar"
)

// WriteFile writes the image as "docker save" would: an archive of a manifest,
// the image's configuration, and one layer. The same image makes the same file.
func (i Image) WriteFile(file string) error {
	layer, err := i.layer()
	if err != nil {
		return err
	}
	config, err := json.Marshal(i.config(layer))
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configFile, "RepoTags": i.Names, "Layers": []string{layerFile},
	}})
	if err != nil {
		return err
	}
	archive := tree{
		manifestFile: {Content: manifest, Mode: 0o644},
		configFile:   {Content: config, Mode: 0o644},
		layerFile:    {Content: layer, Mode: 0o644},
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := archive.write(tar.NewWriter(out)); err != nil {
		return err
	}
	return out.Close()
}

// config is the image's configuration (OCI image specification).
func (i Image) config(layer []byte) map[string]any {
	sum := sha256.Sum256(layer)
	return map[string]any{
		"os":           "linux",
		"architecture": runtime.GOARCH,
		"config": map[string]any{
			"Env":        append([]string{searchPath}, i.Env...),
			"Entrypoint": i.Entrypoint,
			"Cmd":        i.Command,
		},
		"rootfs": map[string]any{
			"type":     "layers",
			"diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])},
		},
	}
}

// layer returns a tar archive of all files.
func (i Image) layer() ([]byte, error) {
	t := newTree()
	if len(i.Packages) > 0 {
		installed, err := readPackages()
		if err != nil {
			return nil, err
		}
		if err := t.addPackages(installed, i.Packages); err != nil {
			return nil, err
		}
	}
	for name, file := range i.Files {
		t.add(name, file)
	}
	content, err := t.archive()
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	return content, nil
}
