package hostnode

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/deploy/local/must"
)

// mapLookup holds objects as NAME → data; all of them in every namespace.
type mapLookup struct {
	configMaps map[string]map[string]string
	secrets    map[string]map[string][]byte
}

func (m mapLookup) configMap(_ context.Context, _, name string) (map[string]string, error) {
	data, ok := m.configMaps[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return data, nil
}

func (m mapLookup) secret(_ context.Context, _, name string) (map[string][]byte, error) {
	data, ok := m.secrets[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	return data, nil
}

func fieldRef(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func configMapKey(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func secretKey(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func envPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", UID: "u-1",
			Labels:      map[string]string{"batch.kubernetes.io/job-completion-index": "3"},
			Annotations: map[string]string{"note": "n"},
		},
		Spec: corev1.PodSpec{NodeName: "local", ServiceAccountName: "sa"},
	}
}

func fromConfigMap(name, prefix string, optional bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional,
	}}
}

func fromSecret(name string, optional bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional,
	}}
}

// An envCase is a container's environment in a namespace with the config map cm and
// the secret s.
type envCase struct {
	env     []corev1.EnvVar
	envFrom []corev1.EnvFromSource
	want    map[string]string
	wantErr string
}

func checkEnv(t *testing.T, cases map[string]envCase) {
	t.Helper()
	objects := mapLookup{
		configMaps: map[string]map[string]string{"cm": {"k": "v", "other": "o"}},
		secrets:    map[string]map[string][]byte{"s": {"k": []byte("hidden")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := containerEnv(t.Context(), envPod(), &corev1.Container{Env: tc.env, EnvFrom: tc.envFrom}, objects)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			must.Succeed(t, err)
			must.Equal(t, "variables", tc.want, got)
		})
	}
}

func TestContainerEnv(t *testing.T) {
	checkEnv(t, map[string]envCase{
		"literals, and a reference to an earlier one": {
			env:  []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)2"}},
			want: map[string]string{"A": "1", "B": "12"},
		},
		"a reference to a later one stays as it is": {
			env:  []corev1.EnvVar{{Name: "B", Value: "$(A)2"}, {Name: "A", Value: "1"}},
			want: map[string]string{"A": "1", "B": "$(A)2"},
		},
		"an empty literal is set": {
			env:  []corev1.EnvVar{{Name: "A"}},
			want: map[string]string{"A": ""},
		},
		"the last of two with one name wins": {
			env:  []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "$(A)2"}},
			want: map[string]string{"A": "12"},
		},
		"every field path": {
			env: []corev1.EnvVar{
				{Name: "NAME", ValueFrom: fieldRef("metadata.name")},
				{Name: "NAMESPACE", ValueFrom: fieldRef("metadata.namespace")},
				{Name: "UID", ValueFrom: fieldRef("metadata.uid")},
				{Name: "INDEX", ValueFrom: fieldRef("metadata.labels['batch.kubernetes.io/job-completion-index']")},
				{Name: "NOTE", ValueFrom: fieldRef("metadata.annotations['note']")},
				{Name: "ABSENT", ValueFrom: fieldRef("metadata.labels['absent']")},
				{Name: "NODE", ValueFrom: fieldRef("spec.nodeName")},
				{Name: "ACCOUNT", ValueFrom: fieldRef("spec.serviceAccountName")},
				{Name: "POD_IP", ValueFrom: fieldRef("status.podIP")},
				{Name: "HOST_IP", ValueFrom: fieldRef("status.hostIP")},
			},
			want: map[string]string{
				"NAME": "p", "NAMESPACE": "ns", "UID": "u-1", "INDEX": "3", "NOTE": "n", "ABSENT": "", "NODE": "local",
				"ACCOUNT": "sa", "POD_IP": "127.0.0.1", "HOST_IP": "127.0.0.1",
			},
		},
	})
}

func TestContainerEnvFromKeys(t *testing.T) {
	checkEnv(t, map[string]envCase{
		"keys of a config map and a secret": {
			env:  []corev1.EnvVar{{Name: "A", ValueFrom: configMapKey("cm", "k", false)}, {Name: "B", ValueFrom: secretKey("s", "k", false)}},
			want: map[string]string{"A": "v", "B": "hidden"},
		},
		"optional references that lead nowhere leave the variable out": {
			env: []corev1.EnvVar{
				{Name: "A", ValueFrom: configMapKey("none", "k", true)},
				{Name: "B", ValueFrom: configMapKey("cm", "none", true)},
				{Name: "C", ValueFrom: secretKey("none", "k", true)},
				{Name: "D", ValueFrom: secretKey("s", "none", true)},
			},
			want: map[string]string{},
		},
		"a missing config map": {
			env:     []corev1.EnvVar{{Name: "A", ValueFrom: configMapKey("none", "k", false)}},
			wantErr: `configmaps "none" not found`,
		},
		"a missing key of a secret": {
			env:     []corev1.EnvVar{{Name: "A", ValueFrom: secretKey("s", "none", false)}},
			wantErr: "couldn't find key none in Secret ns/s",
		},
	})
}

func TestContainerEnvFromWholeObjects(t *testing.T) {
	checkEnv(t, map[string]envCase{
		"whole objects with and without a prefix, overridden by env, and open to references": {
			envFrom: []corev1.EnvFromSource{fromConfigMap("cm", "P_", false), fromSecret("s", false)},
			env:     []corev1.EnvVar{{Name: "P_other", Value: "mine"}, {Name: "R", Value: "$(P_k)"}},
			want:    map[string]string{"P_k": "v", "P_other": "mine", "k": "hidden", "R": "v"},
		},
		"an optional whole object that is missing": {
			envFrom: []corev1.EnvFromSource{fromConfigMap("none", "", true), fromSecret("none", true)},
			want:    map[string]string{},
		},
		"a whole object that is missing": {
			envFrom: []corev1.EnvFromSource{fromSecret("none", false)},
			wantErr: `secrets "none" not found`,
		},
	})
}

func TestBaseEnvIsSmall(t *testing.T) {
	machine := map[string]string{"PATH": "/bin", "HOME": "/h", "LANG": "C", "SECRET": "x"}
	got := baseEnv(func(name string) string { return machine[name] }, nil)
	must.Equal(t, "variables", map[string]string{"PATH": "/bin", "HOME": "/h", "LANG": "C"}, got)
	got = baseEnv(func(string) string { return "" }, []string{"EXTRA=a=b"})
	must.Equal(t, "variables of a bare node", map[string]string{"PATH": defaultPath, "EXTRA": "a=b"}, got)
}
