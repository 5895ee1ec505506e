package hostnode

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// defaultPath is the PATH of containers if the node process has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// lookup reads what environment variables may refer to. An absent object is an apierrors.IsNotFound error.
type lookup interface {
	configMap(ctx context.Context, namespace, name string) (map[string]string, error)
	secret(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

// apiLookup reads from the API server, once a use: a later start sees a later version, as with the kubelet.
type apiLookup struct{ client kubernetes.Interface }

func (l apiLookup) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	object, err := l.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.Data, nil
}

func (l apiLookup) secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	object, err := l.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.Data, nil
}

// baseEnv is what every container starts from: PATH, HOME and LANG as the node process has them, and the NAME=VALUE lines
// of extra.
func baseEnv(getenv func(string) string, extra []string) map[string]string {
	vars := map[string]string{"PATH": defaultPath}
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value := getenv(name); value != "" {
			vars[name] = value
		}
	}
	for _, line := range extra {
		name, value, _ := strings.Cut(line, "=")
		vars[name] = value
	}
	return vars
}

// environment resolves env and envFrom of one container.
type environment struct {
	pod    *corev1.Pod
	lookup lookup
	// vars are the declared variables so far: only they can be referred to by $(NAME) in later ones.
	vars map[string]string
}

// containerEnv returns the declared variables of a container. An error means that it cannot start now, but may later.
func containerEnv(ctx context.Context, pod *corev1.Pod, spec *corev1.Container, l lookup) (map[string]string, error) {
	e := environment{pod: pod, lookup: l, vars: make(map[string]string)}
	for _, from := range spec.EnvFrom {
		if err := e.addAll(ctx, from); err != nil {
			return nil, err
		}
	}
	for _, v := range spec.Env {
		if err := e.add(ctx, v); err != nil {
			return nil, err
		}
	}
	return e.vars, nil
}

func (e *environment) addAll(ctx context.Context, from corev1.EnvFromSource) error {
	if ref := from.ConfigMapRef; ref != nil {
		data, err := e.lookup.configMap(ctx, e.pod.Namespace, ref.Name)
		for key, value := range data {
			e.vars[from.Prefix+key] = value
		}
		return unlessOptional(err, ref.Optional)
	}
	if ref := from.SecretRef; ref != nil {
		data, err := e.lookup.secret(ctx, e.pod.Namespace, ref.Name)
		for key, value := range data {
			e.vars[from.Prefix+key] = string(value)
		}
		return unlessOptional(err, ref.Optional)
	}
	return nil
}

func unlessOptional(err error, optional *bool) error {
	if optional != nil && *optional && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (e *environment) add(ctx context.Context, v corev1.EnvVar) error {
	if v.Value != "" || v.ValueFrom == nil {
		e.vars[v.Name] = expansion.Expand(v.Value, expansion.MappingFuncFor(e.vars))
		return nil
	}
	value, found, err := e.valueFrom(ctx, v.ValueFrom)
	if err != nil {
		return err
	}
	if found {
		e.vars[v.Name] = value
	}
	return nil
}

// valueFrom reports found=false for an optional reference that leads nowhere: the variable is left out then.
func (e *environment) valueFrom(ctx context.Context, from *corev1.EnvVarSource) (value string, found bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = fieldValue(e.pod, from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		data, err := e.lookup.configMap(ctx, e.pod.Namespace, ref.Name)
		value, found = data[ref.Key]
		return value, found, e.keyError("ConfigMap", ref.Name, ref.Key, ref.Optional, found, err)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, err := e.lookup.secret(ctx, e.pod.Namespace, ref.Name)
		bytes, found := data[ref.Key]
		return string(bytes), found, e.keyError("Secret", ref.Name, ref.Key, ref.Optional, found, err)
	}
	return "", false, nil
}

func (e *environment) keyError(kind, name, key string, optional *bool, found bool, err error) error {
	if err != nil {
		return unlessOptional(err, optional)
	}
	if found || optional != nil && *optional {
		return nil
	}
	return fmt.Errorf("couldn't find key %v in %s %v/%v", key, kind, e.pod.Namespace, name)
}

// list renders variables as NAME=value in the order of their names.
func list(vars map[string]string) []string {
	out := make([]string, 0, len(vars))
	for name, value := range vars {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}
