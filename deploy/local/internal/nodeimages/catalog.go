package nodeimages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	e2eimage "k8s.io/kubernetes/test/utils/image"

	"jobpolicy.dev/deploy/local/internal/containernode"
	"jobpolicy.dev/deploy/local/internal/perlpi"
)

// busybox is where its package puts it.
const busybox = "/bin/busybox"

// Write writes every image into dir, a file for each. pause is the file of the
// program that holds a pod's namespaces.
func Write(dir, pause string) error {
	images, err := catalog(pause)
	if err != nil {
		return err
	}
	for name, image := range images {
		if err := image.WriteFile(filepath.Join(dir, name+".tar")); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}

// catalog returns the images by the names of their files. Two of them have the names that Kubernetes' own end-to-end specs
// of Jobs and CronJobs ask for, too: these need a shell, expr, cat, touch and sleep of the one, and of the other that it
// ends when it is told to. JobSet's ask for bash:latest, with ping.
func catalog(pause string) (map[string]Image, error) {
	program, err := os.ReadFile(pause)
	if err != nil {
		return nil, err
	}
	applets, err := applets()
	if err != nil {
		return nil, err
	}
	return map[string]Image{
		"pause": {
			Names:      []string{containernode.PauseImage, e2eimage.GetE2EImage(e2eimage.Pause)},
			Files:      map[string]File{"/pause": {Content: program, Mode: 0o755}},
			Entrypoint: []string{"/pause"},
		},
		"busybox": {
			Names:    []string{"busybox:latest", e2eimage.GetE2EImage(e2eimage.BusyBox)},
			Packages: []string{"busybox-static"},
			Files:    applets,
			Command:  []string{"sh"},
		},
		"tools": {
			Names: []string{
				"bash:5", "bash:latest", "perl:latest", "perl:5.34.0", "python:latest", "ghcr.io/cybozu/ubuntu:22.04",
			},
			Files: map[string]File{
				"/usr/share/perl5/" + perlpi.File: {Content: perlpi.Source, Mode: 0o644},
				"/bin/ping":                       {Link: busybox},
			},
			Env:      []string{"PERL5OPT=-M" + perlpi.Name},
			Packages: []string{"bash", "busybox-static", "coreutils", "dash", "perl", "python3"},
		},
	}, nil
}

// applets are the names under which busybox is started.
func applets() (map[string]File, error) {
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s (package busybox-static): %w", busybox, err)
	}
	links := map[string]File{}
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" {
			links["/bin/"+name] = File{Link: busybox}
		}
	}
	return links, nil
}
