package jobcheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

const (
	// maxCronJobName leaves room for the 11 characters that name a run.
	maxCronJobName = 52
	// maxGenerateName is how much of generateName the API server takes; five random
	// characters follow.
	maxGenerateName = 58
	// runSuffix stands for the time of a run, in minutes since 1970: eight digits until 2160.
	runSuffix = "-29000000"
)

// everyRun begins the text about a CronJob that the API server takes, but not its Jobs.
const everyRun = "every run is refused: "

// run reports that the API server refuses what is made of the object: the Job itself, or
// every run of a CronJob.
func (s *subject) run(path, text string) {
	if s.cron != nil {
		text = everyRun + text
	}
	s.at(Error, path, text)
}

// fullName is the name of the object, with x for what the API server will add.
func (s *subject) fullName() string {
	if s.name != "" || s.object.GenerateName == "" {
		return s.name
	}
	return s.object.GenerateName[:min(len(s.object.GenerateName), maxGenerateName)] + "xxxxx"
}

// names checks the name, and those that are made of it.
func names(s *subject) {
	name := s.fullName()
	path := "metadata.name"
	if s.name == "" {
		path = "metadata.generateName"
	}
	switch n := len(name); {
	case n == 0:
		s.at(Error, "metadata.name", "is required, or generateName")
		return
	case s.cron != nil && n > maxCronJobName:
		s.at(Error, path, fmt.Sprintf("has %d characters; the name of a CronJob may have %d", n, maxCronJobName))
		return
	case s.cron == nil && n > validation.LabelValueMaxLength && !s.manual():
		s.at(Error, path, fmt.Sprintf("has %d characters; the name of a Job may have %d, because it becomes a label of the pods", n, validation.LabelValueMaxLength))
	}
	if _, hook := s.object.Annotations["argocd.argoproj.io/hook"]; s.name == "" && !hook {
		s.at(Note, path, "without a name, kubectl create takes it; kubectl apply, Kustomize and Helm need metadata.name")
	}
	if s.cron != nil {
		name += runSuffix
	}
	if n := ptr.Deref(s.spec.Completions, 0); s.indexed() && n > 0 {
		hostname := fmt.Sprintf("%s-%d", name, n-1)
		if problems := validation.IsDNS1123Label(hostname); len(problems) > 0 {
			s.run(path, fmt.Sprintf("%q would be the hostname of a pod of the Indexed Job, and %s", hostname, problems[0]))
		}
	}
}

// metadata checks what the API server asks of all objects, and of the Job and its pods.
func metadata(s *subject) {
	object := s.object.DeepCopy()
	object.Name, object.Generation = s.fullName(), 0
	if object.Namespace == "" {
		object.Namespace = metav1.NamespaceDefault
	}
	if object.Name == "" {
		object.Name = "x" // the check names reports it
	}
	s.metaErrors(apivalidation.ValidateObjectMeta(object, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")), s.refused)
	s.finalizers("metadata.finalizers", object.Finalizers)
	if s.cron != nil {
		s.metaErrors(labelsAndAnnotations("spec.jobTemplate.metadata", &s.cron.Spec.JobTemplate.ObjectMeta), s.run)
	}
	template := &s.spec.Template.ObjectMeta
	s.metaErrors(labelsAndAnnotations(s.base+".template.metadata", template), s.refused)
	s.finalizers(s.base+".template.metadata.finalizers", template.Finalizers)
}

func labelsAndAnnotations(path string, o *metav1.ObjectMeta) field.ErrorList {
	at := field.NewPath(path)
	found := metav1validation.ValidateLabels(o.Labels, at.Child("labels"))
	return append(found, apivalidation.ValidateAnnotations(o.Annotations, at.Child("annotations"))...)
}

// refused reports that the API server refuses the object.
func (s *subject) refused(path, text string) { s.at(Error, path, text) }

func (s *subject) metaErrors(found field.ErrorList, report func(path, text string)) {
	slices.SortFunc(found, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) }) // maps have no order
	for _, problem := range found {
		report(problem.Field, fmt.Sprintf("%q: %s", fmt.Sprint(problem.BadValue), problem.Detail))
	}
}

// finalizers checks the names of finalizers. Those of the template become the pods' own.
func (s *subject) finalizers(path string, names []string) {
	for _, name := range names {
		known := name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents || name == "kubernetes"
		switch problems := validation.IsQualifiedName(name); {
		case len(problems) > 0:
			s.at(Error, path, fmt.Sprintf("%q: %s", name, problems[0]))
		case !strings.Contains(name, "/") && !known:
			s.at(Error, path, fmt.Sprintf("%q: expected a name with a domain in front", name))
		}
	}
}

func (s *subject) manual() bool { return ptr.Deref(s.spec.ManualSelector, false) }

// selector checks the selector, and the labels that the API server sets for it.
func selector(s *subject) {
	switch {
	case s.cron != nil:
		if s.spec.Selector != nil {
			s.find(Error, "selector", "must not be set in a CronJob: the API server makes one for each run")
		}
		if s.manual() {
			s.find(Error, "manualSelector", "must not be true in a CronJob")
		}
		generatedLabels(s, "", "")
	case s.manual():
		manualSelector(s)
	default:
		generatedLabels(s, string(s.object.UID), s.name)
	}
}

// generatedLabels checks the labels that the API server sets on the pod template and selects
// by. It sets none that is there already, and then refuses a value of another Job. uid and name
// are empty if they are chosen later.
func generatedLabels(s *subject, uid, name string) {
	const later = "\x00" // no label has this value
	uid, name = cmp.Or(uid, later), cmp.Or(name, later)
	generated := map[string]string{
		batchv1.ControllerUidLabel: uid, "controller-uid": uid,
		batchv1.JobNameLabel: name, "job-name": name,
	}
	for _, label := range slices.Sorted(maps.Keys(generated)) {
		if value, ok := s.spec.Template.Labels[label]; ok && value != generated[label] {
			s.run(fmt.Sprintf("%s.template.metadata.labels[%s]", s.base, label),
				fmt.Sprintf("%q is of another Job: leave this label out, the API server sets it", value))
		}
	}
	if s.spec.Selector == nil || s.cron != nil {
		return
	}
	chosen, err := metav1.LabelSelectorAsSelector(s.spec.Selector)
	if err != nil || !chosen.Matches(labels.Set(generated)) {
		s.find(Error, "selector", "must not be set: the API server makes one (manualSelector: true would allow it)")
	}
}

// manualSelector checks a selector that the user has set.
func manualSelector(s *subject) {
	if s.spec.Selector == nil {
		s.find(Error, "manualSelector", "is true, but there is no selector")
		return
	}
	s.errors("selector", metav1validation.ValidateLabelSelector(s.spec.Selector, metav1validation.LabelSelectorValidationOptions{}, nil))
	chosen, err := metav1.LabelSelectorAsSelector(s.spec.Selector)
	if err == nil && !chosen.Matches(labels.Set(s.spec.Template.Labels)) {
		s.find(Error, "selector", "does not match the labels of the pod template")
	}
	s.find(Warning, "selector", "is chosen by hand: another Job with the same labels would take these pods for its own")
}
