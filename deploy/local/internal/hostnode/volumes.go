package hostnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// volumeVarPrefix begins the variables that hold the directories of a container's volumes.
	volumeVarPrefix = "JOBPOLICY_VOLUME_"
	// serviceAccountVar holds the directory with token, ca.crt and namespace.
	serviceAccountVar = "JOBPOLICY_SERVICE_ACCOUNT_DIR"
	// podDirVar marks every process of a pod, and holds the pod's directory.
	podDirVar = "JOBPOLICY_POD_DIR"
)

// makeVolumes creates the directories of a pod's volumes; existing ones are kept as they are. Only emptyDir and the
// service-account volume get here. The latter stays empty, with a warning in the log, if its contents cannot be had.
func makeVolumes(ctx context.Context, l layout, pod *corev1.Pod, tokens tokenSource, logger *slog.Logger) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		dir := l.volume(pod.UID, v.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if !isServiceAccountVolume(v) {
			continue
		}
		if err := writeServiceAccount(ctx, dir, pod, v.Projected, tokens); err != nil {
			logger.Warn("service account volume is incomplete", "namespace", pod.Namespace, "pod", pod.Name, "error", err)
		}
	}
	return nil
}

// writeServiceAccount writes the files of a service-account volume: all that can be had, even if others cannot.
func writeServiceAccount(ctx context.Context, dir string, pod *corev1.Pod, v *corev1.ProjectedVolumeSource, tokens tokenSource) error {
	var errs []error
	for _, source := range v.Sources {
		files, err := serviceAccountFiles(ctx, pod, source, tokens)
		errs = append(errs, err)
		for name, content := range files {
			errs = append(errs, writeLocal(dir, name, content))
		}
	}
	return errors.Join(errs...)
}

func writeLocal(dir, name, content string) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("path %q leaves the volume", name)
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
}

func serviceAccountFiles(ctx context.Context, pod *corev1.Pod, source corev1.VolumeProjection, tokens tokenSource) (map[string]string, error) {
	files := make(map[string]string)
	switch {
	case source.ServiceAccountToken != nil:
		token, err := tokens.token(ctx, pod.Namespace, pod.Spec.ServiceAccountName, source.ServiceAccountToken)
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		files[source.ServiceAccountToken.Path] = token
	case source.ConfigMap != nil:
		data, err := tokens.authority(ctx, pod.Namespace, source.ConfigMap.Name)
		if err != nil {
			return nil, fmt.Errorf("config map %s: %w", source.ConfigMap.Name, err)
		}
		for _, item := range source.ConfigMap.Items {
			files[item.Path] = data[item.Key]
		}
	case source.DownwardAPI != nil:
		for _, item := range source.DownwardAPI.Items {
			if item.FieldRef == nil {
				continue
			}
			value, err := fieldValue(pod, item.FieldRef.FieldPath)
			if err != nil {
				return nil, err
			}
			files[item.Path] = value
		}
	}
	return files, nil
}

// mount makes a container's volume mounts reachable: the returned variables name the directories, and a relative mount
// path becomes a symbolic link in dir, the container's own directory.
func mount(l layout, pod *corev1.Pod, c *corev1.Container, dir string) (map[string]string, error) {
	vars := make(map[string]string)
	for _, m := range c.VolumeMounts {
		target := filepath.Join(l.volume(pod.UID, m.Name), m.SubPath)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return nil, err
		}
		vars[volumeVar(m.Name)] = target
		if strings.HasPrefix(m.Name, serviceAccountVolumePrefix) {
			vars[serviceAccountVar] = target
		}
		if !filepath.IsLocal(m.MountPath) {
			continue
		}
		link := filepath.Join(dir, m.MountPath)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return nil, err
		}
		if err := os.Symlink(target, link); err != nil {
			return nil, err
		}
	}
	return vars, nil
}

// volumeVar names the variable of a volume: its name in capitals, with _ for everything but letters and digits.
func volumeVar(volume string) string {
	return volumeVarPrefix + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, volume)
}
