package jobcheck

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// maxPort is the highest number of a port.
const maxPort = 65_535

// podTemplate looks for frequent mistakes in a pod template. The API server refuses more.
func podTemplate(s *subject) {
	pod := &s.spec.Template.Spec
	if d := pod.ActiveDeadlineSeconds; d != nil && *d < 1 {
		s.find(Error, "template.spec.activeDeadlineSeconds", fmt.Sprintf("must be 1 or more, is %d", *d))
	}
	if pod.DNSPolicy != "" {
		s.oneOf("template.spec.dnsPolicy", string(pod.DNSPolicy), string(corev1.DNSClusterFirst), string(corev1.DNSClusterFirstWithHostNet), string(corev1.DNSDefault), string(corev1.DNSNone))
	}
	s.valid("template.spec.serviceAccountName", pod.ServiceAccountName, validation.IsDNS1123Subdomain)
	s.valid("template.spec.priorityClassName", pod.PriorityClassName, validation.IsDNS1123Subdomain)
	s.valid("template.spec.hostname", pod.Hostname, validation.IsDNS1123Label)
	if len(pod.EphemeralContainers) > 0 {
		s.find(Error, "template.spec.ephemeralContainers", "must not be in a pod template")
	}
	placement(s, pod)
	names := volumes(s, pod.Volumes)
	eachContainer(pod, func(path string, c *corev1.Container) {
		container(s, path, c)
		mounts(s, path, c, names)
		if pod.HostNetwork {
			hostPorts(s, path, c.Ports)
		}
	})
}

// eachContainer calls f with every container and its path.
func eachContainer(pod *corev1.PodSpec, f func(path string, c *corev1.Container)) {
	for i := range pod.InitContainers {
		f(fmt.Sprintf("template.spec.initContainers[%d]", i), &pod.InitContainers[i])
	}
	for i := range pod.Containers {
		f(fmt.Sprintf("template.spec.containers[%d]", i), &pod.Containers[i])
	}
}

func placement(s *subject, pod *corev1.PodSpec) {
	for _, key := range slices.Sorted(maps.Keys(pod.NodeSelector)) {
		s.valid("template.spec.nodeSelector", key, validation.IsQualifiedName)
		s.valid("template.spec.nodeSelector", pod.NodeSelector[key], validation.IsValidLabelValue)
	}
	for i, t := range pod.Tolerations {
		if t.Operator == corev1.TolerationOpExists && t.Value != "" {
			s.find(Error, fmt.Sprintf("template.spec.tolerations[%d].value", i), "must be empty with the operator Exists")
		}
	}
	for i, c := range pod.TopologySpreadConstraints {
		if c.MaxSkew < 1 {
			s.find(Error, fmt.Sprintf("template.spec.topologySpreadConstraints[%d].maxSkew", i), fmt.Sprintf("must be 1 or more, is %d", c.MaxSkew))
		}
	}
	if security := pod.SecurityContext; security != nil {
		notNegative(s, "template.spec.securityContext.runAsUser", security.RunAsUser)
		notNegative(s, "template.spec.securityContext.runAsGroup", security.RunAsGroup)
	}
}

func notNegative(s *subject, path string, n *int64) {
	if n != nil && *n < 0 {
		s.find(Error, path, fmt.Sprintf("must be 0 or more, is %d", *n))
	}
}

// volumes checks the volumes and returns their names.
func volumes(s *subject, list []corev1.Volume) []string {
	var names []string
	for i, v := range list {
		path := fmt.Sprintf("template.spec.volumes[%d]", i)
		switch {
		case v.Name == "":
			s.find(Error, path+".name", "is required")
		case slices.Contains(names, v.Name):
			s.find(Error, path+".name", fmt.Sprintf("%q is the name of another volume, too", v.Name))
		default:
			s.valid(path+".name", v.Name, validation.IsDNS1123Label)
		}
		if set := whichSet(v.VolumeSource); len(set) > 1 {
			s.find(Error, path, "has more than one kind: "+strings.Join(set, ", "))
		}
		names = append(names, v.Name)
	}
	return names
}

// whichSet returns the JSON names of those fields of a struct of pointers that are set.
func whichSet(of any) []string {
	var set []string
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			set = append(set, name)
		}
	}
	return set
}

func mounts(s *subject, path string, c *corev1.Container, volumes []string) {
	seen := map[string]bool{}
	for i, m := range c.VolumeMounts {
		at := fmt.Sprintf("%s.volumeMounts[%d]", path, i)
		if !slices.Contains(volumes, m.Name) {
			s.find(Error, at+".name", fmt.Sprintf("%q is no volume of the pod template", m.Name))
		}
		switch {
		case m.MountPath == "":
			s.find(Error, at+".mountPath", "is required")
		case seen[m.MountPath]:
			s.find(Error, at+".mountPath", fmt.Sprintf("%q is the path of another volume, too", m.MountPath))
		}
		seen[m.MountPath] = true
	}
}

func hostPorts(s *subject, path string, ports []corev1.ContainerPort) {
	for i, p := range ports {
		if p.HostPort != 0 && p.HostPort != p.ContainerPort {
			s.find(Error, fmt.Sprintf("%s.ports[%d].hostPort", path, i), fmt.Sprintf("must be containerPort (%d) with hostNetwork, is %d", p.ContainerPort, p.HostPort))
		}
	}
}

func container(s *subject, path string, c *corev1.Container) {
	s.valid(path+".name", c.Name, validation.IsDNS1123Label)
	if c.ImagePullPolicy != "" {
		s.oneOf(path+".imagePullPolicy", string(c.ImagePullPolicy), string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever))
	}
	environment(s, path, c)
	for i, p := range c.Ports {
		if p.ContainerPort < 1 || p.ContainerPort > maxPort {
			s.find(Error, fmt.Sprintf("%s.ports[%d].containerPort", path, i), fmt.Sprintf("must be from 1 to %d, is %d", maxPort, p.ContainerPort))
		}
	}
	quantities(s, path+".resources", &c.Resources)
	handlers(s, path, c)
}

func handlers(s *subject, path string, c *corev1.Container) {
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}, {"startupProbe", c.StartupProbe}} {
		if p.probe != nil {
			oneHandler(s, path+"."+p.name, p.probe.ProbeHandler)
		}
	}
	if c.Lifecycle == nil {
		return
	}
	if h := c.Lifecycle.PostStart; h != nil {
		oneHandler(s, path+".lifecycle.postStart", *h)
	}
	if h := c.Lifecycle.PreStop; h != nil {
		oneHandler(s, path+".lifecycle.preStop", *h)
	}
}

func oneHandler(s *subject, path string, handler any) {
	switch set := whichSet(handler); len(set) {
	case 0:
		s.find(Error, path, "says nothing to do, such as exec")
	case 1:
	default:
		s.find(Error, path, "has more than one kind: "+strings.Join(set, ", "))
	}
}

func environment(s *subject, path string, c *corev1.Container) {
	for i, e := range c.Env {
		at := fmt.Sprintf("%s.env[%d]", path, i)
		if e.Name == "" {
			s.find(Error, at+".name", "is required")
		}
		s.valid(at+".name", e.Name, validation.IsRelaxedEnvVarName)
		if e.ValueFrom != nil && e.Value != "" {
			s.find(Error, at+".valueFrom", "must not be there beside value")
		}
	}
	for i, from := range c.EnvFrom {
		if set := whichSet(from); len(set) != 1 {
			s.find(Error, fmt.Sprintf("%s.envFrom[%d]", path, i), "expected one of configMapRef and secretRef")
		}
	}
}

func quantities(s *subject, path string, r *corev1.ResourceRequirements) {
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			at := path + "." + list.name + "." + string(name)
			if strings.Contains(string(name), "/") {
				at = path + "." + list.name
			} else if !knownResource(name) {
				s.find(Error, at, fmt.Sprintf("%q: expected cpu, memory, ephemeral-storage, or a name with a domain in front", name))
			}
			value := list.values[name]
			if value.Cmp(resource.Quantity{}) < 0 {
				s.find(Error, at, "must not be negative, is "+value.String())
			}
			limit, limited := r.Limits[name]
			if list.name == "requests" && limited && value.Cmp(limit) > 0 {
				s.find(Error, at, fmt.Sprintf("is %s, above the limit %s", ptr.To(value).String(), ptr.To(limit).String()))
			}
		}
	}
}

func knownResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
