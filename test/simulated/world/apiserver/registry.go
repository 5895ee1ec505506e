package apiserver

import (
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	cronjobstore "k8s.io/kubernetes/pkg/registry/batch/cronjob/storage"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	jobstore "k8s.io/kubernetes/pkg/registry/batch/job/storage"
	leasestore "k8s.io/kubernetes/pkg/registry/coordination/lease/storage"
	configmapstore "k8s.io/kubernetes/pkg/registry/core/configmap/storage"
	eventstore "k8s.io/kubernetes/pkg/registry/core/event/storage"
	namespacestore "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	quotastore "k8s.io/kubernetes/pkg/registry/core/resourcequota/storage"
	podgroupstore "k8s.io/kubernetes/pkg/registry/scheduling/podgroup/storage"
	workloadstore "k8s.io/kubernetes/pkg/registry/scheduling/workload/storage"
)

// A place is the API path of a resource or subresource.
type place struct {
	group, version, resource, subresource string
}

// A registryTable is shared by all servers of a process. That is possible because upstream's
// registries have no state of their own, and useful because making them takes longer than a
// world.
type registryTable struct {
	stores    []*store
	endpoints map[place]*endpoint
}

var registries = sync.OnceValue(buildRegistries)

// store returns the store of a resource.
func (t *registryTable) store(resource string) *store {
	for _, r := range t.stores {
		if r.resource == resource {
			return r
		}
	}
	return nil
}

// registration collects the stores that the registries ask for.
type registration struct{ *registryTable }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g registration) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	version := "v1"
	if resource.Group == schedulingv1beta1.GroupName {
		version = schedulingv1beta1.SchemeGroupVersion.Version
	}
	r := &store{
		resource: resource.Resource, prefix: "/registry/" + resource.Resource,
		kind: schema.GroupVersionKind{Group: resource.Group, Version: version, Kind: kinds[0].Kind},
	}
	return generic.RESTOptions{
		// The codec is for dry runs only, which are not stored.
		StorageConfig: &storagebackend.ConfigForResource{
			Config:        storagebackend.Config{Codec: legacyscheme.Codecs.LegacyCodec(r.kind.GroupVersion())},
			GroupResource: resource,
		},
		ResourcePrefix:          r.prefix,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		Decorator: func(_ *storagebackend.ConfigForResource, _ string, _ func(runtime.Object) (string, error),
			newFunc, _ func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			r.newFunc = newFunc
			g.stores = append(g.stores, r)
			return r, func() {}, nil
		},
	}, nil
}

// eventsLive is how many seconds a real server keeps events. Here they are kept for ever.
const eventsLive = 3600

func buildRegistries() *registryTable {
	t := &registryTable{endpoints: map[place]*endpoint{}}
	options := registration{t}
	core, batch, scheduling := corev1.SchemeGroupVersion, batchv1.SchemeGroupVersion, schedulingv1beta1.SchemeGroupVersion

	pods := noError(podstore.NewStorage(options, nil, nil, nil, nil))
	t.serve(core, "pods", "Pod", pods.Pod)
	t.serve(core, "pods/status", "Pod", pods.Status)
	t.serve(core, "pods/binding", "Binding", pods.Binding)

	jobs := noError(jobstore.NewStorage(options))
	jobStore := t.store("jobs")
	jobStore.hasUID = true
	jobs.Job.CreateStrategy = earlyUID{jobs.Job.CreateStrategy, job.Strategy, jobStore}
	t.serve(batch, "jobs", "Job", jobs.Job)
	t.serve(batch, "jobs/status", "Job", jobs.Status)

	cronJobs, cronJobStatus, err := cronjobstore.NewREST(options)
	check(err)
	t.serve(batch, "cronjobs", "CronJob", cronJobs)
	t.serve(batch, "cronjobs/status", "CronJob", cronJobStatus)

	events := noError(eventstore.NewREST(options, eventsLive))
	t.store("events").uncached = true
	t.serve(core, "events", "Event", events)
	t.serve(eventsv1.SchemeGroupVersion, "events", "Event", events)

	t.serve(coordinationv1.SchemeGroupVersion, "leases", "Lease", noError(leasestore.NewREST(options)))
	t.serve(core, "configmaps", "ConfigMap", noError(configmapstore.NewREST(options)))

	namespaces, namespaceStatus, finalize, err := namespacestore.NewREST(options)
	check(err)
	t.serve(core, "namespaces", "Namespace", namespaces)
	t.serve(core, "namespaces/status", "Namespace", namespaceStatus)
	t.serve(core, "namespaces/finalize", "Namespace", finalize)

	nodes := noError(nodestore.NewStorage(options, kubeletclient.KubeletClientConfig{}, nil))
	t.serve(core, "nodes", "Node", nodes.Node)
	t.serve(core, "nodes/status", "Node", nodes.Status)

	quotas, quotaStatus, err := quotastore.NewREST(options)
	check(err)
	t.serve(core, "resourcequotas", "ResourceQuota", quotas)
	t.serve(core, "resourcequotas/status", "ResourceQuota", quotaStatus)

	t.serve(scheduling, "workloads", "Workload", noError(workloadstore.NewREST(options)))
	podGroups, podGroupStatus, err := podgroupstore.NewREST(options)
	check(err)
	t.serve(scheduling, "podgroups", "PodGroup", podGroups)
	t.serve(scheduling, "podgroups/status", "PodGroup", podGroupStatus)
	return t
}

func (t *registryTable) serve(version schema.GroupVersion, path, kind string, storage rest.Storage) {
	resource, subresource, _ := strings.Cut(path, "/")
	at := place{version.Group, version.Version, resource, subresource}
	t.endpoints[at] = newEndpoint(at, version.WithKind(kind), storage, false)
}

// noError returns a value that is made once, from constants: an error is a programming error.
func noError[T any](made T, err error) T {
	check(err)
	return made
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
