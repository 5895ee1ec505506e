package jobcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// eachContainer calls f with every container and its path.
func eachContainer(pod *corev1.PodSpec, f func(path string, c *corev1.Container, isInit bool)) {
	for i := range pod.InitContainers {
		f(fmt.Sprintf("template.spec.initContainers[%d]", i), &pod.InitContainers[i], true)
	}
	for i := range pod.Containers {
		f(fmt.Sprintf("template.spec.containers[%d]", i), &pod.Containers[i], false)
	}
}

// podFits checks what the fields of a pod say together.
func podFits(s *subject, pod *corev1.PodSpec) {
	if pod.ServiceAccountName == "" {
		s.wrong("template.spec.serviceAccount", formats["subdomainOrEmpty"](pod.DeprecatedServiceAccount))
	}
	if pod.NodeName != "" && len(pod.SchedulingGates) > 0 {
		s.find(Error, "template.spec.nodeName", "must be empty with schedulingGates, or no pod can be created")
	}
	if pod.DNSPolicy == corev1.DNSNone && (pod.DNSConfig == nil || len(pod.DNSConfig.Nameservers) == 0) {
		s.find(Error, "template.spec.dnsConfig.nameservers", "is required with dnsPolicy: None")
	}
	if pod.DNSConfig != nil && len(strings.Join(pod.DNSConfig.Searches, " ")) > maxSearchList {
		s.find(Error, "template.spec.dnsConfig.searches", fmt.Sprintf("must have at most %d characters", maxSearchList))
	}
	if pod.HostnameOverride != nil && (pod.HostNetwork || ptr.Deref(pod.SetHostnameAsFQDN, false)) {
		s.find(Error, "template.spec.hostnameOverride", "must not be set with hostNetwork or setHostnameAsFQDN")
	}
	if len(pod.Overhead) > 0 && pod.RuntimeClassName == nil {
		s.find(Warning, "template.spec.overhead", "needs runtimeClassName: without it admission refuses every pod")
	}
	if ptr.Deref(pod.Priority, 0) != 0 && pod.PriorityClassName == "" {
		s.find(Warning, "template.spec.priority", "comes from priorityClassName: admission refuses every pod with another number")
	}
	if pod.Resources != nil {
		podResources(s, pod)
	}
	s.resources("template.spec.overhead", &corev1.ResourceRequirements{Limits: pod.Overhead})
	for i, a := range pod.TopologySpreadConstraints {
		for _, b := range pod.TopologySpreadConstraints[:i] {
			if a.TopologyKey == b.TopologyKey && a.WhenUnsatisfiable == b.WhenUnsatisfiable {
				s.find(Error, fmt.Sprintf("template.spec.topologySpreadConstraints[%d]", i), "repeats topologyKey and whenUnsatisfiable of another one")
			}
		}
	}
}

// maxSearchList is how long the DNS search list may be.
const maxSearchList = 2048

// securityFits checks the security contexts of the pod and of its containers.
func securityFits(s *subject, pod *corev1.PodSpec) {
	noHostUsers := !ptr.Deref(pod.HostUsers, true)
	if noHostUsers && (pod.HostNetwork || pod.HostPID || pod.HostIPC) {
		s.find(Error, "template.spec.hostUsers", "must not be false with hostNetwork, hostPID or hostIPC")
	}
	if pod.HostPID && ptr.Deref(pod.ShareProcessNamespace, false) {
		s.find(Error, "template.spec.shareProcessNamespace", "must not be true with hostPID")
	}
	hostSysctls(s, pod)
	eachContainer(pod, func(path string, c *corev1.Container, _ bool) {
		if noHostUsers && len(c.VolumeDevices) > 0 {
			s.find(Error, path+".volumeDevices", "must be empty with hostUsers: false")
		}
		security := c.SecurityContext
		if security == nil {
			return
		}
		if !noHostUsers && ptr.Deref(security.ProcMount, "") == corev1.UnmaskedProcMount {
			s.find(Error, path+".securityContext.procMount", "Unmasked needs hostUsers: false")
		}
		admin := security.Capabilities != nil && slices.Contains(security.Capabilities.Add, "CAP_SYS_ADMIN")
		if !ptr.Deref(security.AllowPrivilegeEscalation, true) && (ptr.Deref(security.Privileged, false) || admin) {
			s.find(Error, path+".securityContext.allowPrivilegeEscalation", "must not be false with privileged: true or CAP_SYS_ADMIN")
		}
	})
}

// hostSysctls reports sysctls of a namespace that the pod shares with its node.
func hostSysctls(s *subject, pod *corev1.PodSpec) {
	if pod.SecurityContext == nil {
		return
	}
	ofIPC := func(name string) bool {
		return name == "kernel.sem" || strings.HasPrefix(name, "kernel.shm") || strings.HasPrefix(name, "kernel.msg") || strings.HasPrefix(name, "fs.mqueue.")
	}
	for i, c := range pod.SecurityContext.Sysctls {
		name := strings.ReplaceAll(c.Name, "/", ".")
		if pod.HostNetwork && strings.HasPrefix(name, "net.") || pod.HostIPC && ofIPC(name) {
			s.find(Error, fmt.Sprintf("template.spec.securityContext.sysctls[%d].name", i), fmt.Sprintf("%q must not be set with hostNetwork (net.) or hostIPC", c.Name))
		}
	}
}

// containersFit checks what the containers say together with each other and with the pod.
func containersFit(s *subject, pod *corev1.PodSpec) {
	names, hostPorts := map[string]bool{}, map[string]bool{}
	eachContainer(pod, func(path string, c *corev1.Container, isInit bool) {
		if c.Name != "" && names[c.Name] {
			s.find(Error, path+".name", fmt.Sprintf("%q is the name of another container, too", c.Name))
		}
		names[c.Name] = true
		if isInit {
			clear(hostPorts) // init containers run one after the other
		}
		portsFit(s, path, pod.HostNetwork && !isInit, c.Ports, hostPorts)
		if isInit && ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
			initFits(s, path, c)
		}
		if c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0 {
			s.find(Error, path+".restartPolicy", "is required with restartPolicyRules")
		}
		probesFit(s, path, pod, c)
		usesVolumes(s, path, pod, c)
		for i, p := range c.ResizePolicy {
			if pod.RestartPolicy == corev1.RestartPolicyNever && p.RestartPolicy == corev1.RestartContainer {
				s.find(Error, fmt.Sprintf("%s.resizePolicy[%d].restartPolicy", path, i), "must be NotRequired with restartPolicy: Never of the pod")
			}
		}
	})
}

func portsFit(s *subject, path string, onHost bool, ports []corev1.ContainerPort, seen map[string]bool) {
	for i, p := range ports {
		at := fmt.Sprintf("%s.ports[%d].hostPort", path, i)
		if onHost && p.HostPort != 0 && p.HostPort != p.ContainerPort {
			s.find(Error, at, fmt.Sprintf("must be containerPort (%d) with hostNetwork, is %d", p.ContainerPort, p.HostPort))
		}
		key := fmt.Sprint(p.Protocol, " ", p.HostIP, " ", p.HostPort)
		if p.HostPort != 0 && seen[key] {
			s.find(Error, at, fmt.Sprintf("%d is there twice", p.HostPort))
		}
		seen[key] = true
	}
}

// initFits checks an init container that ends before the next one starts.
func initFits(s *subject, path string, c *corev1.Container) {
	for _, f := range []struct {
		name string
		set  bool
	}{{"lifecycle", c.Lifecycle != nil}, {"livenessProbe", c.LivenessProbe != nil}, {"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil}} {
		if f.set {
			s.find(Error, path+"."+f.name, "needs restartPolicy: Always of the init container")
		}
	}
	for i, p := range c.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			s.find(Error, fmt.Sprintf("%s.resizePolicy[%d].restartPolicy", path, i), "RestartContainer needs restartPolicy: Always of the init container")
		}
	}
}

func probesFit(s *subject, path string, pod *corev1.PodSpec, c *corev1.Container) {
	for name, probe := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "startupProbe": c.StartupProbe} { // order does not matter: findings are sorted
		if probe != nil && probe.SuccessThreshold > 1 {
			s.find(Error, path+"."+name+".successThreshold", "must be 1")
		}
	}
	if c.ReadinessProbe != nil && c.ReadinessProbe.TerminationGracePeriodSeconds != nil {
		s.find(Error, path+".readinessProbe.terminationGracePeriodSeconds", "must not be set")
	}
	if c.Lifecycle == nil {
		return
	}
	for _, h := range []struct {
		name    string
		handler *corev1.LifecycleHandler
	}{{"postStart", c.Lifecycle.PostStart}, {"preStop", c.Lifecycle.PreStop}} {
		grace := ptr.Deref(pod.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
		if h.handler != nil && h.handler.Sleep != nil && (h.handler.Sleep.Seconds < 0 || h.handler.Sleep.Seconds > grace) {
			s.find(Error, path+".lifecycle."+h.name+".sleep.seconds", outside(h.handler.Sleep.Seconds, 0, grace))
		}
	}
}

// usesVolumes checks that the volumes that a container uses are there, and are of a kind that
// it can use so.
func usesVolumes(s *subject, path string, pod *corev1.PodSpec, c *corev1.Container) {
	volumes := map[string]corev1.VolumeSource{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v.VolumeSource
	}
	mounted, at := map[string]bool{}, map[string]bool{}
	for i, m := range c.VolumeMounts {
		here := fmt.Sprintf("%s.volumeMounts[%d]", path, i)
		if _, ok := volumes[m.Name]; !ok && m.Name != "" {
			s.find(Error, here+".name", fmt.Sprintf("%q is no volume of the pod template", m.Name))
		}
		privileged := c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false)
		if ptr.Deref(m.MountPropagation, "") == corev1.MountPropagationBidirectional && !privileged {
			s.find(Error, here+".mountPropagation", "Bidirectional needs privileged: true")
		}
		mounted[m.Name], at[m.MountPath] = true, true
	}
	for i, d := range c.VolumeDevices {
		here := fmt.Sprintf("%s.volumeDevices[%d].name", path, i)
		v, ok := volumes[d.Name]
		switch {
		case !ok || v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			s.find(Error, here, fmt.Sprintf("%q: expected a volume with a claim (persistentVolumeClaim or ephemeral)", d.Name))
		case mounted[d.Name] || at[d.DevicePath]:
			s.find(Error, here, "is a mount of the container, too")
		}
	}
	for i, e := range c.Env {
		if e.ValueFrom == nil || e.ValueFrom.FileKeyRef == nil {
			continue
		}
		// A volume of no kind is an emptyDir.
		if v, ok := volumes[e.ValueFrom.FileKeyRef.VolumeName]; !ok || v.EmptyDir == nil && v != (corev1.VolumeSource{}) {
			s.find(Error, fmt.Sprintf("%s.env[%d].valueFrom.fileKeyRef.volumeName", path, i), "must name a volume of the kind emptyDir")
		}
	}
}

// resources checks what a container, or the pod, requests.
func (s *subject) resources(path string, r *corev1.ResourceRequirements) {
	ofPod := path == "template.spec.resources"
	huge, computes := false, false
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			at := fmt.Sprintf("%s.%s[%s]", path, list.name, name)
			if !strings.Contains(string(name), "/") {
				at = path + "." + list.name + "." + string(name)
			}
			s.wrong(at, resourceName(name, ofPod))
			s.wrong(at, resourceValue(name, list.values[name]))
			if list.name == "requests" {
				s.wrong(at, requestFits(name, list.values[name], r.Limits))
			}
			huge = huge || hugePages(name)
			computes = computes || name == corev1.ResourceCPU || name == corev1.ResourceMemory
		}
	}
	if huge && !computes {
		s.find(Error, path, "hugepages need cpu or memory beside them")
	}
	if ofPod && r.Claims != nil {
		s.find(Error, path+".claims", "must not be set for the pod")
		return
	}
	claimed := map[string]bool{}
	for i, claim := range r.Claims {
		at := fmt.Sprintf("%s.claims[%d].name", path, i)
		known := slices.ContainsFunc(s.spec.Template.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.Name == claim.Name })
		switch {
		case claim.Name == "" || !known:
			s.find(Error, at, fmt.Sprintf("%q is none of the pod's resourceClaims", claim.Name))
		case claimed[claim.Name] || claimed[claim.Name+"/"+claim.Request]:
			s.find(Error, at, fmt.Sprintf("%q is there twice", claim.Name))
		}
		claimed[claim.Name+"/"+claim.Request] = true
		claimed[claim.Name] = claimed[claim.Name] || claim.Request == ""
		if claim.Request != "" {
			s.wrong(at, formats["label"](claim.Request))
		}
	}
}

// podResources checks that the containers fit into what the pod requests as a whole.
func podResources(s *subject, pod *corev1.PodSpec) {
	sums := corev1.ResourceList{}
	eachContainer(pod, func(path string, c *corev1.Container, isInit bool) {
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			limit, whole := c.Resources.Limits[name], pod.Resources.Limits[name]
			if _, limited := pod.Resources.Limits[name]; limited && !isInit && limit.Cmp(whole) > 0 {
				s.find(Error, path+".resources.limits."+string(name), fmt.Sprintf("is %s, above the limit %s of the pod", limit.String(), whole.String()))
			}
		}
		requests := maps.Clone(c.Resources.Limits) // a container requests its limits if it says nothing else
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		maps.Copy(requests, c.Resources.Requests)
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			request := requests[name]
			if !isInit || ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
				request.Add(sums[name])
				sums[name] = request
			}
			whole, set := pod.Resources.Requests[name]
			if set && request.Cmp(whole) > 0 {
				s.find(Error, "template.spec.resources.requests."+string(name), fmt.Sprintf("is %s, less than the containers request (%s)", whole.String(), request.String()))
			}
		}
	})
}

func hugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// extended reports whether a resource is one that a device plugin offers. It cannot be
// requested above or below its limit, and only as a whole number.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func resourceName(name corev1.ResourceName, ofPod bool) string {
	if list := validation.IsQualifiedName(string(name)); len(list) > 0 {
		return fmt.Sprintf("%q: %s", name, list[0])
	}
	switch {
	case name == corev1.ResourceCPU || name == corev1.ResourceMemory || hugePages(name):
		return ""
	case ofPod:
		return fmt.Sprintf("%q: expected cpu, memory or hugepages-SIZE", name)
	case name == corev1.ResourceEphemeralStorage || strings.Contains(string(name), "/") && !extended(name):
		return ""
	case !extended(name):
		return fmt.Sprintf("%q: expected cpu, memory, ephemeral-storage, or a name with a domain in front", name)
	}
	if strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) || len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) > 0 {
		return fmt.Sprintf("%q: expected a shorter name, without requests. in front", name)
	}
	return ""
}

func resourceValue(name corev1.ResourceName, value resource.Quantity) string {
	if value.Cmp(resource.Quantity{}) < 0 {
		return "must not be negative, is " + value.String()
	}
	if extended(name) && value.MilliValue()%1000 != 0 {
		return "must be a whole number, is " + value.String()
	}
	if !hugePages(name) {
		return ""
	}
	page, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	if err != nil || page.Sign() <= 0 || page.MilliValue()%1000 != 0 || value.Value()%page.Value() != 0 {
		return "must be a multiple of the page size, is " + value.String()
	}
	return ""
}

func requestFits(name corev1.ResourceName, value resource.Quantity, limits corev1.ResourceList) string {
	limit, limited := limits[name]
	exact := extended(name) || hugePages(name)
	switch {
	case exact && !limited:
		return "needs a limit"
	case exact && value.Cmp(limit) != 0:
		return fmt.Sprintf("is %s, and must be the limit %s", value.String(), limit.String())
	case limited && value.Cmp(limit) > 0:
		return fmt.Sprintf("is %s, above the limit %s", value.String(), limit.String())
	}
	return ""
}

func notNegative(v any) string {
	if q := v.(resource.Quantity); q.Sign() < 0 {
		return "must not be negative, is " + q.String()
	}
	return ""
}

// shownCommand is how much of a long line is shown.
const shownCommand = 80

// command finds a line for a shell in place of a program: nothing splits it into words.
func command(s *subject) {
	eachContainer(&s.spec.Template.Spec, func(path string, c *corev1.Container, _ bool) {
		if len(c.Command) == 0 {
			return
		}
		program := c.Command[0]
		first, _, spaced := strings.Cut(program, " ")
		if !spaced || first == "" || strings.Contains(program, `\`) { // C:\Program Files is no line for a shell
			return
		}
		shown, advice := fmt.Sprintf("%q", program), ""
		if len(program) > shownCommand {
			shown = fmt.Sprintf("the text that begins with %q", strings.ToValidUTF8(program[:shownCommand], ""))
		}
		if len(c.Command) == 1 && len(c.Args) == 0 { // Further words would not be a part of the shell's line.
			advice = ", or put sh and -c before it"
		}
		s.find(Warning, path+".command", fmt.Sprintf("%s is taken as the name of a program, with its spaces: write each word as an element of its own%s", shown, advice))
	})
}
