package jobcheck

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/services/internal/manifest"
)

// podTemplate checks a pod template: each field by podFields, then what fields say together.
func podTemplate(s *subject) {
	pod := &s.spec.Template.Spec
	s.fields("template.spec", reflect.ValueOf(pod).Elem())
	if len(pod.EphemeralContainers) > 0 {
		s.find(Error, "template.spec.ephemeralContainers", "must not be in a pod template")
	}
	podFits(s, pod)
	securityFits(s, pod)
	containersFit(s, pod)
}

// wrongFields lists the fields of a struct, and of all that is in it, that do not have what podFields says. Paths
// begin at the struct.
func wrongFields(v any) []manifest.Problem {
	var s subject
	s.fields("", reflect.ValueOf(v))
	var wrong []manifest.Problem
	for _, f := range s.found {
		wrong = append(wrong, manifest.Problem{Path: strings.TrimLeft(f.Path, "."), Text: f.Text})
	}
	return wrong
}

// fields checks a value and all that is in it.
func (s *subject) fields(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			s.fields(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			s.fields(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Struct:
		s.together(path, v.Addr().Interface())
		s.fieldsOf(path, v.Type().Name(), v)
	}
}

// fieldsOf checks the fields of a struct. Those of a struct inside it that has no name of its
// own may have a line in podFields under the name of the outer one.
func (s *subject) fieldsOf(path, outer string, v reflect.Value) {
	s.onlyOne(path, v)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := jsonName(f)
		switch {
		case !f.IsExported():
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			s.together(path, v.Field(i).Addr().Interface())
			s.fieldsOf(path, outer, v.Field(i))
		default:
			rule := fieldRules[outer+"."+name]
			if rule == nil {
				rule = fieldRules[v.Type().Name()+"."+name]
			}
			if rule != nil && rule.elsewhere {
				continue
			}
			if rule != nil {
				s.fieldFits(rule, path+"."+name, v.Field(i))
			}
			s.fields(path+"."+name, v.Field(i))
		}
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func (s *subject) fieldFits(rule *fieldRule, path string, v reflect.Value) {
	if rule.missing(v) {
		if rule.required {
			s.find(Error, path, "is required")
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			s.wrong(path, rule.problem(v.Elem(), true))
		}
	case reflect.Slice:
		if rule.most > 0 && v.Len() > rule.most {
			s.find(Error, path, fmt.Sprintf("has %d elements; expected at most %d", v.Len(), rule.most))
		}
		for _, name := range rule.unique {
			s.unique(path, name, v)
		}
		if v.Type().Elem().Kind() != reflect.Struct {
			for i := range v.Len() {
				s.wrong(fmt.Sprintf("%s[%d]", path, i), rule.problem(v.Index(i), true))
			}
		}
	default:
		s.wrong(path, rule.problem(v, rule.form != nil && v.Kind() != reflect.String))
	}
}

func (s *subject) wrong(path, text string) {
	if text != "" {
		s.find(Error, path, text)
	}
}

// unique reports elements of a list that have the same text in a field.
func (s *subject) unique(path, name string, list reflect.Value) {
	seen := map[string]bool{}
	for i := range list.Len() {
		for k := range list.Index(i).NumField() {
			if jsonName(list.Index(i).Type().Field(k)) != name {
				continue
			}
			value := list.Index(i).Field(k).String()
			if value != "" && seen[value] {
				s.find(Error, fmt.Sprintf("%s[%d].%s", path, i, name), fmt.Sprintf("%q is there twice", value))
			}
			seen[value] = true
		}
	}
}

// onlyOne checks a type that has one of several pointers.
func (s *subject) onlyOne(path string, v reflect.Value) {
	rule := fieldRules[v.Type().Name()]
	if rule == nil {
		return
	}
	var known, set []string
	for i := range v.NumField() {
		name := jsonName(v.Type().Field(i))
		if v.Field(i).Kind() != reflect.Pointer || rule.pointers != nil && !slices.Contains(rule.pointers, name) {
			continue
		}
		known = append(known, name)
		if !v.Field(i).IsNil() {
			set = append(set, name)
		}
	}
	switch {
	case len(set) > 1:
		s.find(Error, path, "has more than one kind: "+strings.Join(set, ", "))
	case len(set) < rule.fewest:
		s.find(Error, path, "expected one of "+strings.Join(known, ", "))
	}
}

// together checks what the fields of one struct say together.
func (s *subject) together(path string, v any) {
	switch v := v.(type) {
	case *metav1.LabelSelector:
		s.errors(path, metav1validation.ValidateLabelSelector(v, metav1validation.LabelSelectorValidationOptions{}, nil))
	case *corev1.ResourceRequirements:
		s.resources(path, v)
	case *corev1.ObjectFieldSelector:
		s.wrong(path+".fieldPath", podField(v.FieldPath, strings.Contains(path, ".env[")))
	case *corev1.ResourceFieldSelector:
		s.resourceField(path, v)
	case *corev1.EnvVar:
		if v.ValueFrom != nil && v.Value != "" {
			s.find(Error, path+".valueFrom", "must not be there beside value")
		}
	case *corev1.VolumeMount:
		mountFits(s, path, v)
	case *corev1.Toleration:
		tolerationFits(s, path, v)
	case *corev1.NodeAffinity:
		nodeAffinityFits(s, path, v)
	case *corev1.PodAffinityTerm:
		labelKeysFit(s, path, v.MatchLabelKeys, v.MismatchLabelKeys, v.LabelSelector)
	case *corev1.TopologySpreadConstraint:
		labelKeysFit(s, path, v.MatchLabelKeys, nil, v.LabelSelector)
		if v.MinDomains != nil && v.WhenUnsatisfiable != corev1.DoNotSchedule {
			s.find(Error, path+".minDomains", "needs whenUnsatisfiable: DoNotSchedule")
		}
	case *corev1.SeccompProfile:
		localhostFits(s, path, string(v.Type), v.LocalhostProfile)
		if v.LocalhostProfile != nil {
			s.wrong(path+".localhostProfile", first(relativePath(*v.LocalhostProfile)))
		}
	case *corev1.AppArmorProfile:
		localhostFits(s, path, string(v.Type), v.LocalhostProfile)
		if v.LocalhostProfile != nil {
			s.wrong(path+".localhostProfile", first(append(one(*v.LocalhostProfile == "", "is required with the type Localhost"), trimmed(*v.LocalhostProfile)...)))
		}
	default:
		s.volumeFits(path, v)
	}
}

// volumeFits is together for the types of volumes.
func (s *subject) volumeFits(path string, v any) {
	switch v := v.(type) {
	case *corev1.ProjectedVolumeSource:
		projectedPaths(s, path, v)
	case *corev1.ClusterTrustBundleProjection:
		trustBundleFits(s, path, v)
	case *corev1.PodCertificateProjection:
		certificateFits(s, path, v)
	case *corev1.PersistentVolumeClaimSpec:
		claimFits(s, path, v)
	case *corev1.PersistentVolumeClaimTemplate:
		s.metaErrors(labelsAndAnnotations(path+".metadata", &v.ObjectMeta), func(path, text string) { s.find(Error, path, text) })
		rest := v.ObjectMeta.DeepCopy()
		if rest.Labels, rest.Annotations = nil, nil; !reflect.DeepEqual(*rest, metav1.ObjectMeta{}) {
			s.find(Error, path+".metadata", "must have only labels and annotations")
		}
	case *corev1.CSIVolumeSource:
		s.secretRef(path+".nodePublishSecretRef", v.NodePublishSecretRef)
		if v.NodePublishSecretRef != nil {
			s.wrong(path+".nodePublishSecretRef.name", formats["subdomainOrEmpty"](v.NodePublishSecretRef.Name))
		}
	case *corev1.CinderVolumeSource:
		s.secretRef(path+".secretRef", v.SecretRef)
	case *corev1.StorageOSVolumeSource:
		s.secretRef(path+".secretRef", v.SecretRef)
	case *corev1.FCVolumeSource:
		if (len(v.TargetWWNs) == 0) == (len(v.WWIDs) == 0) {
			s.find(Error, path, "expected one of targetWWNs, wwids")
		}
		if len(v.TargetWWNs) > 0 && (v.Lun == nil || *v.Lun < 0 || *v.Lun > 255) {
			s.find(Error, path+".lun", "must be from 0 to 255 with targetWWNs")
		}
	case *corev1.FlockerVolumeSource:
		if (v.DatasetName == "") == (v.DatasetUUID == "") {
			s.find(Error, path, "expected one of datasetName, datasetUUID")
		}
	}
}

func (s *subject) secretRef(path string, ref *corev1.LocalObjectReference) {
	if ref != nil && ref.Name == "" {
		s.find(Error, path+".name", "is required")
	}
}

func (s *subject) errors(path string, list field.ErrorList) {
	for _, e := range list {
		s.find(Error, strings.TrimSuffix(path+"."+strings.TrimPrefix(e.Field, "<nil>"), "."), e.ErrorBody())
	}
}

// podField says what is wrong with a field that a pod reads of itself, in a variable or a file.
func podField(name string, variable bool) string {
	if label, ok := strings.CutPrefix(name, "metadata.labels['"); ok && strings.HasSuffix(label, "']") {
		return formats["qualified"](strings.TrimSuffix(label, "']"))
	}
	if annotation, ok := strings.CutPrefix(name, "metadata.annotations['"); ok && strings.HasSuffix(annotation, "']") {
		return formats["qualified"](strings.ToLower(strings.TrimSuffix(annotation, "']")))
	}
	known := []string{"metadata.name", "metadata.namespace", "metadata.uid"}
	if variable {
		known = append(known, "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	} else {
		known = append(known, "metadata.labels", "metadata.annotations")
	}
	if name == "" || slices.Contains(known, name) || variable && name == "spec.host" {
		return ""
	}
	return fmt.Sprintf("%q: expected one of %s, metadata.labels['KEY'], metadata.annotations['KEY']", name, strings.Join(known, ", "))
}

func (s *subject) resourceField(path string, v *corev1.ResourceFieldSelector) {
	if v.ContainerName == "" && !strings.Contains(path, ".env[") {
		s.find(Error, path+".containerName", "is required")
	}
	if v.Divisor.IsZero() {
		return
	}
	known := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if strings.HasSuffix(v.Resource, ".cpu") {
		known = []string{"1m", "1"}
	}
	if divisor := v.Divisor.String(); !slices.Contains(known, divisor) {
		s.find(Error, path+".divisor", fmt.Sprintf("%q: expected one of %s", divisor, strings.Join(known, ", ")))
	}
}

func mountFits(s *subject, path string, m *corev1.VolumeMount) {
	if m.SubPath != "" && m.SubPathExpr != "" {
		s.find(Error, path+".subPathExpr", "must not be there beside subPath")
	}
	recursive := ptr.Deref(m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled) != corev1.RecursiveReadOnlyDisabled
	if recursive && (!m.ReadOnly || ptr.Deref(m.MountPropagation, corev1.MountPropagationNone) != corev1.MountPropagationNone) {
		s.find(Error, path+".recursiveReadOnly", "needs readOnly: true, and no mountPropagation")
	}
}

func tolerationFits(s *subject, path string, t *corev1.Toleration) {
	switch {
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		s.find(Error, path+".value", "must be empty with the operator Exists")
	case t.Operator != corev1.TolerationOpExists && t.Key == "":
		s.find(Error, path+".operator", "must be Exists without a key")
	case t.Operator != corev1.TolerationOpExists:
		s.wrong(path+".value", formats["labelValue"](t.Value))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		s.find(Error, path+".tolerationSeconds", "needs effect: NoExecute")
	}
}

func nodeAffinityFits(s *subject, path string, a *corev1.NodeAffinity) {
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			nodeTermFits(s, fmt.Sprintf("%s.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[%d]", path, i), &required.NodeSelectorTerms[i], true)
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		nodeTermFits(s, fmt.Sprintf("%s.preferredDuringSchedulingIgnoredDuringExecution[%d].preference", path, i), &a.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference, false)
	}
}

// nodeTermFits checks a term. Only what is required must have values that a label can have.
func nodeTermFits(s *subject, path string, term *corev1.NodeSelectorTerm, required bool) {
	for i, e := range term.MatchExpressions {
		at := fmt.Sprintf("%s.matchExpressions[%d]", path, i)
		switch e.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			s.wrong(at+".values", unless(len(e.Values) > 0, "is required with the operator "+string(e.Operator)))
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			s.wrong(at+".values", unless(len(e.Values) == 0, "must be empty with the operator "+string(e.Operator)))
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			s.wrong(at+".values", unless(len(e.Values) == 1, "must be one value with the operator "+string(e.Operator)))
		default:
			s.find(Error, at+".operator", fmt.Sprintf("%q: expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt", e.Operator))
		}
		for _, value := range e.Values {
			if required {
				s.wrong(at+".values", formats["labelValue"](value))
			}
		}
	}
	for i, f := range term.MatchFields {
		at := fmt.Sprintf("%s.matchFields[%d]", path, i)
		if f.Key != metav1.ObjectNameField {
			s.find(Error, at+".key", "must be metadata.name")
		}
		if f.Operator != corev1.NodeSelectorOpIn && f.Operator != corev1.NodeSelectorOpNotIn || len(f.Values) != 1 {
			s.find(Error, at+".values", "must be one value, with the operator In or NotIn")
		}
		for _, value := range f.Values {
			s.wrong(at+".values", formats["subdomain"](value))
		}
	}
}

// unless is the text, or nothing if all is well.
func unless(well bool, text string) string {
	if well {
		return ""
	}
	return text
}

func labelKeysFit(s *subject, path string, match, mismatch []string, selector *metav1.LabelSelector) {
	if len(match)+len(mismatch) > 0 && selector == nil {
		s.find(Error, path+".labelSelector", "is required with matchLabelKeys or mismatchLabelKeys")
		return
	}
	for _, key := range match {
		if slices.Contains(mismatch, key) {
			s.find(Error, path+".matchLabelKeys", fmt.Sprintf("%q is in mismatchLabelKeys, too", key))
		}
	}
}

func localhostFits(s *subject, path, kind string, profile *string) {
	switch {
	case kind == "Localhost" && profile == nil:
		s.find(Error, path+".localhostProfile", "is required with the type Localhost")
	case kind != "Localhost" && profile != nil:
		s.find(Error, path+".localhostProfile", "needs the type Localhost")
	}
}

func projectedPaths(s *subject, path string, v *corev1.ProjectedVolumeSource) {
	seen := map[string]bool{}
	add := func(file string) {
		if file != "" && seen[file] {
			s.find(Error, path+".sources", fmt.Sprintf("%q is the path of two files", file))
		}
		seen[file] = true
	}
	for _, source := range v.Sources {
		var items []corev1.KeyToPath
		if source.Secret != nil {
			items = append(items, source.Secret.Items...)
		}
		if source.ConfigMap != nil {
			items = append(items, source.ConfigMap.Items...)
		}
		for _, item := range items {
			add(item.Path)
		}
		if source.DownwardAPI != nil {
			for _, item := range source.DownwardAPI.Items {
				add(item.Path)
			}
		}
		if source.ClusterTrustBundle != nil {
			add(source.ClusterTrustBundle.Path)
		}
		if c := source.PodCertificate; c != nil {
			add(c.CredentialBundlePath)
			add(c.KeyPath)
			add(c.CertificateChainPath)
		}
	}
}

func trustBundleFits(s *subject, path string, v *corev1.ClusterTrustBundleProjection) {
	if v.Name != nil && v.LabelSelector != nil {
		s.find(Error, path+".labelSelector", "must not be set with a name")
	}
}

// daySeconds is how long a certificate of a signer of Kubernetes is valid at most.
const daySeconds = 24 * 60 * 60

func certificateFits(s *subject, path string, v *corev1.PodCertificateProjection) {
	if v.CredentialBundlePath == "" && v.KeyPath == "" && v.CertificateChainPath == "" {
		s.find(Error, path, "needs credentialBundlePath, keyPath or certificateChainPath")
	}
	domain, _, _ := strings.Cut(v.SignerName, "/")
	if strings.HasSuffix("."+domain, ".kubernetes.io") && ptr.Deref(v.MaxExpirationSeconds, 0) > daySeconds {
		s.find(Error, path+".maxExpirationSeconds", fmt.Sprintf("must be at most %d with a signer of Kubernetes, is %d", daySeconds, *v.MaxExpirationSeconds))
	}
}

func claimFits(s *subject, path string, c *corev1.PersistentVolumeClaimSpec) {
	if size, ok := c.Resources.Requests[corev1.ResourceStorage]; !ok || size.Cmp(resource.Quantity{}) <= 0 {
		s.find(Error, path+".resources.requests.storage", "is required, and must be more than 0")
	}
	if len(c.AccessModes) > 1 && slices.Contains(c.AccessModes, corev1.ReadWriteOncePod) && slices.ContainsFunc(c.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadWriteOncePod }) {
		s.find(Error, path+".accessModes", "must not have ReadWriteOncePod beside others")
	}
	source, ref := c.DataSource, c.DataSourceRef
	if source != nil && ptr.Deref(source.APIGroup, "") == "" && source.Kind != "PersistentVolumeClaim" {
		s.find(Error, path+".dataSource.apiGroup", "is required for "+source.Kind)
	}
	if ref == nil {
		return
	}
	if ptr.Deref(ref.APIGroup, "") == "" && ref.Kind != "PersistentVolumeClaim" {
		s.find(Error, path+".dataSourceRef.apiGroup", "is required for "+ref.Kind)
	}
	same := source == nil || ptr.Equal(source.APIGroup, ref.APIGroup) && source.Kind == ref.Kind && source.Name == ref.Name && ptr.Deref(ref.Namespace, "") == ""
	if !same {
		s.find(Error, path+".dataSource", "must be what dataSourceRef says, or not be there")
	}
}
