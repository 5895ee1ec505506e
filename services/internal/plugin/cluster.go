package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/buildinfo"
	"jobpolicy.dev/services/internal/cli"
)

// pageSize is how many objects are read at once.
const pageSize = 500

var (
	scheme = newScheme()
	codecs = serializer.NewCodecFactory(scheme)
	params = runtime.NewParameterCodec(scheme)
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(batchv1.AddToScheme(s))
	utilruntime.Must(corev1.AddToScheme(s))
	return s
}

// clusterFlags say which cluster, as which user, and which namespace.
type clusterFlags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	userExtra []string
}

// AddFlags defines the flags. short says whether --namespace has the short form -n.
func (f *clusterFlags) AddFlags(fs *pflag.FlagSet, short bool) {
	f.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	fs.StringVar(&f.rules.ExplicitPath, "kubeconfig", "", "Path to the kubeconfig file to use.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	if !short {
		names.ContextOverrideFlags.Namespace.ShortName = ""
	}
	// A flag without a name is not defined. cli-runtime does not have these.
	none := clientcmd.FlagInfo{}
	names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password = none, none
	clientcmd.BindOverrideFlags(&f.overrides, fs, names)
	fs.StringArrayVar(&f.userExtra, "as-user-extra", nil, "User extra to impersonate for the operation, as KEY=VALUE; this flag can be repeated.")
}

// Connect returns a reader. It connects at the first call.
func (f *clusterFlags) Connect() (*clusterReader, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, &f.overrides)
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster (--kubeconfig, or the variable KUBECONFIG): %w", err)
	}
	cfg.UserAgent = "kubectl-jobpolicy/" + buildinfo.Version()
	cfg.QPS, cfg.Burst = 50, 100 // as kubectl
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, err
	}
	r := &clusterReader{Namespace: namespace}
	if r.batch, err = client(cfg, "/apis", batchv1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if r.policies, err = client(cfg, "/apis", policyVersion); err != nil {
		return nil, err
	}
	r.core, err = client(cfg, "/api", corev1.SchemeGroupVersion)
	return r, err
}

// namespace is where kubectl creates objects that name none. It asks no cluster.
func (f *clusterFlags) namespace() string {
	name, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, &f.overrides).Namespace()
	if err != nil {
		return "default"
	}
	return name
}

// validate parses the flags that clientcmd leaves as text.
func (f *clusterFlags) validate() error {
	if _, err := clientcmd.ParseTimeout(f.overrides.Timeout); err != nil {
		return cli.Usagef("--request-timeout: expected a duration such as 10s, or 0 for none, got %q", f.overrides.Timeout)
	}
	extra := map[string][]string{}
	for _, pair := range f.userExtra {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return cli.Usagef("--as-user-extra: expected KEY=VALUE, got %q", pair)
		}
		extra[key] = append(extra[key], value)
	}
	if len(extra) > 0 {
		f.overrides.AuthInfo.ImpersonateUserExtra = extra
	}
	return nil
}

func client(cfg *rest.Config, path string, version schema.GroupVersion) (rest.Interface, error) {
	c := rest.CopyConfig(cfg)
	c.APIPath, c.GroupVersion, c.NegotiatedSerializer = path, &version, codecs.WithoutConversion()
	return rest.RESTClientFor(c)
}

// A clusterReader reads one namespace.
type clusterReader struct {
	Namespace             string
	batch, core, policies rest.Interface
}

// Job reads one Job.
func (r *clusterReader) Job(ctx context.Context, name string) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	return job, r.get(ctx, r.batch, "jobs", name, job)
}

// CronJob reads one CronJob.
func (r *clusterReader) CronJob(ctx context.Context, name string) (*batchv1.CronJob, error) {
	cron := &batchv1.CronJob{}
	return cron, r.get(ctx, r.batch, "cronjobs", name, cron)
}

func (r *clusterReader) get(ctx context.Context, c rest.Interface, resource, name string, into runtime.Object) error {
	err := c.Get().Namespace(r.Namespace).Resource(resource).Name(name).Do(ctx).Into(into)
	if err != nil {
		return fmt.Errorf("read %s %s in namespace %s: %w", strings.TrimSuffix(resource, "s"), name, r.Namespace, err)
	}
	return nil
}

var errNoSelector = errors.New("the Job has no selector")

// PodsOf lists the pods that a Job controls, by its UID.
func (r *clusterReader) PodsOf(ctx context.Context, job *batchv1.Job) ([]corev1.Pod, error) {
	if job.Spec.Selector == nil {
		return nil, errNoSelector
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector of job %s: %w", job.Name, err)
	}
	pods, err := list[corev1.Pod](ctx, r.core, r.Namespace, "pods", metav1.ListOptions{LabelSelector: selector.String()}, &corev1.PodList{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !wire.ControlsPod(job, &pod) }), nil
}

// Jobs lists the Jobs of a namespace; the empty one stands for all.
func (r *clusterReader) Jobs(ctx context.Context, namespace string) ([]batchv1.Job, error) {
	return list[batchv1.Job](ctx, r.batch, namespace, "jobs", metav1.ListOptions{}, &batchv1.JobList{})
}

// CronJobs lists the CronJobs of a namespace; the empty one stands for all.
func (r *clusterReader) CronJobs(ctx context.Context, namespace string) ([]batchv1.CronJob, error) {
	return list[batchv1.CronJob](ctx, r.batch, namespace, "cronjobs", metav1.ListOptions{}, &batchv1.CronJobList{})
}

// list reads all objects of a resource page by page. If the list expires between two pages
// (410), it is read at once.
func list[T any](ctx context.Context, c rest.Interface, namespace, resource string, opts metav1.ListOptions, empty runtime.Object) (objects []T, err error) {
	opts.Limit = pageSize
	all, _, err := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		page := empty.DeepCopyObject()
		err := c.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).VersionedParams(&opts, params).Do(ctx).Into(page)
		return page, err
	}).List(ctx, opts)
	if err == nil {
		err = meta.EachListItem(all, func(o runtime.Object) error {
			objects = append(objects, *any(o).(*T))
			return nil
		})
	}
	if err != nil && namespace != "" {
		return nil, fmt.Errorf("list %s in namespace %s: %w", resource, namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	return objects, nil
}

// EventsOf lists the events on one object, the oldest first. The error says whether the
// user lacks the right to read events.
func (r *clusterReader) EventsOf(ctx context.Context, uid types.UID) ([]corev1.Event, error) {
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String()}
	list := &corev1.EventList{}
	if err := r.core.Get().Namespace(r.Namespace).Resource("events").VersionedParams(&opts, params).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list events in namespace %s: %w", r.Namespace, err)
	}
	return list.Items, nil
}
