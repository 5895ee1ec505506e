package kubectl

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // registers what legacyscheme decodes
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/must"
)

// Without these gates the API server drops spec.scheduling.
func init() {
	if err := utilfeature.DefaultMutableFeatureGate.Set("GenericWorkload=true,WorkloadWithJob=true"); err != nil {
		panic(err)
	}
}

// refuseAll is what the API server says against a Job or CronJob, the Job of a CronJob's run,
// and the last pod of the Job.
func refuseAll(t *testing.T, doc string) []string {
	t.Helper()
	var head metav1.PartialObjectMetadata
	must.Succeed(t, yaml.Unmarshal([]byte(doc), &head.TypeMeta))
	data, err := yaml.YAMLToJSON([]byte(doc))
	must.Succeed(t, err)
	object, err := legacyscheme.Scheme.New(head.GroupVersionKind())
	must.Succeed(t, err)
	var problems []string
	strict, err := kjson.UnmarshalStrict(data, object)
	if err != nil {
		return []string{err.Error()}
	}
	for _, problem := range strict {
		problems = append(problems, problem.Error())
	}
	stored, err := create(object)
	if cron, ok := stored.(*batchv1.CronJob); ok && err == nil {
		stored, err = create(runOf(cron))
	}
	if job, ok := stored.(*batchv1.Job); ok && err == nil {
		var p *corev1.Pod
		if p, err = podOf(job); err == nil {
			_, err = create(p)
		}
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

// create sets the defaults of an object and validates it as for a creation, and returns it as
// the API server would store it.
func create(object runtime.Object) (_ runtime.Object, err error) {
	// Validation of a success policy without completions dereferences nil, which is a refusal, too.
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	capabilities.Setup(true, 0) // as nearly every API server is started
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	kind := kinds[0]
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(internal)
	if err != nil {
		return nil, err
	}
	strategy := map[string]rest.RESTCreateStrategy{"Job": job.Strategy, "CronJob": cronjob.Strategy, "Pod": pod.Strategy}[kind.Kind]
	rest.FillObjectMetaSystemFields(accessor)
	if accessor.GetName() == "" && accessor.GetGenerateName() != "" {
		accessor.SetName(strategy.GenerateName(accessor.GetGenerateName()))
	}
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace("default")
	}
	ctx := genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(genericapirequest.NewContext(), accessor.GetNamespace()),
		&genericapirequest.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version})
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		return nil, err
	}
	return legacyscheme.Scheme.ConvertToVersion(internal, kind.GroupVersion())
}

// runOf is the Job that the built-in controller would create for a CronJob.
func runOf(cron *batchv1.CronJob) *batchv1.Job {
	template := cron.Spec.JobTemplate.DeepCopy()
	annotations := map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "2026-01-01T00:00:00Z"}
	for name, value := range template.Annotations {
		annotations[name] = value
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", cron.Name, 29_454_000), Namespace: cron.Namespace, Labels: template.Labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: template.Spec,
	}
}

// podOf is the pod with the highest index that the built-in controller would create for a Job,
// after the admission of service accounts.
func podOf(job *batchv1.Job) (*corev1.Pod, error) {
	p, err := controller.GetPodFromTemplate(&job.Spec.Template, job, metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")))
	if err != nil {
		return nil, err
	}
	p.Namespace, p.GenerateName = job.Namespace, job.Name+"-"
	if ptr.Deref(job.Spec.CompletionMode, "") == batchv1.IndexedCompletion && ptr.Deref(job.Spec.Completions, 0) > 0 {
		index := fmt.Sprint("-", *job.Spec.Completions-1)
		p.Spec.Hostname = job.Name + index
		p.GenerateName = job.Name[:min(len(job.Name), 58-len(index)-1)] + index + "-"
	}
	p.Finalizers = append(p.Finalizers, batchv1.JobTrackingFinalizer)
	if p.Spec.ServiceAccountName == "" {
		p.Spec.ServiceAccountName = "default"
	}
	return p, nil
}
