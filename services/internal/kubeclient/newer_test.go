package kubeclient

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/executor/newerfields"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// marker is the text of an invented field.
const marker = "an-invented-field"

// inventions are the fields of a container, a LeaseSpec and a Secret that are the last on the wire, and the
// invented fields that take their places.
var inventions = map[protowire.Number]protowire.Number{24: 1000, 7: 15, 3: 14}

func texts(number protowire.Number) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), marker)
}

// template is a pod template with a field (restartPolicy of its container) that inNewer makes an invented one.
var template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{
	Containers: []corev1.Container{{Name: "main", RestartPolicy: new(corev1.ContainerRestartPolicy(marker))}}, NodeName: "n",
}}

// inNewer returns an object as an API server encodes it whose types have the invented field.
func inNewer(t *testing.T, obj runtime.Object, kind schema.GroupVersionKind) []byte {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(kind)
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	data, err := runtime.Encode(info.Serializer, obj)
	if err != nil {
		t.Fatal(err)
	}
	for known, invented := range inventions {
		data = bytes.ReplaceAll(data, texts(known), texts(invented))
	}
	return data
}

// A newer is an API server that is newer than the client. It answers each path with one object, and keeps the body
// of the last write.
type newer struct {
	*testing.T
	*rest.Config
	objects map[string][]byte
	written []byte
}

func startNewer(t *testing.T) *newer {
	n := &newer{T: t, objects: map[string][]byte{}}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	n.Config = &rest.Config{Host: server.URL, QPS: 100, Burst: 100, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}}
	return n
}

// ServeHTTP implements http.Handler.
func (n *newer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	object := n.objects[r.URL.Path]
	if r.Method != http.MethodGet {
		n.written, _ = io.ReadAll(r.Body)
		object = n.written
	}
	if r.URL.Query().Get("watch") != "" {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
		info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
		event := &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: n.objects[r.URL.Path+"/n"]}}
		_ = info.StreamSerializer.Serializer.Encode(event, info.StreamSerializer.Framer.NewFrameWriter(w)) // the client went away
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_, _ = w.Write(object) // the client went away
}

// serve lets the server have an object of the kind, and a list of it.
func (n *newer) serve(path string, obj, list runtime.Object, kind schema.GroupVersionKind) {
	n.objects[path+"/n"] = inNewer(n.T, obj, kind)
	n.objects[path] = inNewer(n.T, list, kind.GroupVersion().WithKind(kind.Kind+"List"))
}

// wantWritten compares the body of the last write with an object.
func (n *newer) wantWritten(what string, obj runtime.Object, kind schema.GroupVersionKind) {
	n.Helper()
	want := inNewer(n.T, obj, kind)
	if !bytes.Contains(want, []byte(marker)) {
		n.Fatalf("%s: the wanted object has no invented field", what)
	}
	if !bytes.Equal(want, n.written) {
		n.Errorf("%s, written:\n%q\nwant\n%q", what, n.written, want)
	}
}

// Wherever a Job comes from, its pod is written with a field of the template that the client does not know; so is
// the Job itself.
func TestPodsOfANewerTemplate(t *testing.T) {
	n := startNewer(t)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "ns"}, Spec: batchv1.JobSpec{Template: template}}
	n.serve("/apis/batch/v1/namespaces/ns/jobs", job, &batchv1.JobList{Items: []batchv1.Job{*job}}, wire.JobKind)
	client, err := New(n.Config)
	if err != nil {
		t.Fatal(err)
	}
	jobs := client.BatchV1().Jobs("ns")
	for from, read := range map[string]func(context.Context) *batchv1.Job{
		"get":  func(ctx context.Context) *batchv1.Job { return must(jobs.Get(ctx, "n", metav1.GetOptions{})) },
		"list": func(ctx context.Context) *batchv1.Job { return &must(jobs.List(ctx, metav1.ListOptions{})).Items[0] },
		"watch": func(ctx context.Context) *batchv1.Job {
			return first[*batchv1.Job](jobs.Watch(ctx, metav1.ListOptions{}))
		},
	} {
		seen := read(t.Context())
		made := wire.NewPod{Index: podcache.NoIndex}
		must(client.CoreV1().Pods("ns").Create(t.Context(), made.From(seen), metav1.CreateOptions{}))
		n.wantWritten(from+": pod", made.From(job), corev1.SchemeGroupVersion.WithKind("Pod"))
		seen.Status.Active = 3
		must(jobs.UpdateStatus(t.Context(), seen.DeepCopy(), metav1.UpdateOptions{}))
		written := job.DeepCopy()
		written.Status.Active = 3
		n.wantWritten(from+": Job", written, wire.JobKind)
	}
}

// The same holds for CronJobs and their Jobs.
func TestJobsOfANewerTemplate(t *testing.T) {
	n := startNewer(t)
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "ns"}}
	cron.Spec.JobTemplate.Spec.Template = template
	n.serve("/apis/batch/v1/namespaces/ns/cronjobs", cron, &batchv1.CronJobList{Items: []batchv1.CronJob{*cron}}, wire.CronJobKind)
	client, err := New(n.Config)
	if err != nil {
		t.Fatal(err)
	}
	crons := client.BatchV1().CronJobs("ns")
	for from, read := range map[string]func(context.Context) *batchv1.CronJob{
		"get": func(ctx context.Context) *batchv1.CronJob { return must(crons.Get(ctx, "n", metav1.GetOptions{})) },
		"list": func(ctx context.Context) *batchv1.CronJob {
			return &must(crons.List(ctx, metav1.ListOptions{})).Items[0]
		},
		"watch": func(ctx context.Context) *batchv1.CronJob {
			return first[*batchv1.CronJob](crons.Watch(ctx, metav1.ListOptions{}))
		},
	} {
		seen := read(t.Context())
		run := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: seen.Spec.JobTemplate.Spec}
		newerfields.Job(run, seen)
		must(client.BatchV1().Jobs("ns").Create(t.Context(), run, metav1.CreateOptions{}))
		n.wantWritten(from+": Job", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: cron.Spec.JobTemplate.Spec}, wire.JobKind)
		must(crons.UpdateStatus(t.Context(), seen.DeepCopy(), metav1.UpdateOptions{}))
		n.wantWritten(from+": CronJob", cron, wire.CronJobKind)
	}
}

// The same holds for what else is read and written back.
func TestNewerLeasesAndSecrets(t *testing.T) {
	n := startNewer(t)
	meta := metav1.ObjectMeta{Name: "n", Namespace: "ns"}
	lease := &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{PreferredHolder: new(marker)}}
	n.serve("/apis/coordination.k8s.io/v1/namespaces/ns/leases", lease, &coordinationv1.LeaseList{}, coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	secret := &corev1.Secret{ObjectMeta: meta, Type: marker}
	n.serve("/api/v1/namespaces/ns/secrets", secret, &corev1.SecretList{}, corev1.SchemeGroupVersion.WithKind("Secret"))

	forLease, err := NewForLease(n.Config, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	leases := forLease.CoordinationV1().Leases("ns")
	must(leases.Update(t.Context(), must(leases.Get(t.Context(), "n", metav1.GetOptions{})), metav1.UpdateOptions{}))
	n.wantWritten("Lease", lease, coordinationv1.SchemeGroupVersion.WithKind("Lease"))

	forSecrets, err := NewForSecrets(n.Config)
	if err != nil {
		t.Fatal(err)
	}
	secrets := forSecrets.CoreV1().Secrets("ns")
	must(secrets.Update(t.Context(), must(secrets.Get(t.Context(), "n", metav1.GetOptions{})), metav1.UpdateOptions{}))
	if !bytes.Contains(n.written, texts(14)) { // And, as always, an empty type.
		t.Errorf("Secret, written without its invented field:\n%q", n.written)
	}
}

func must[T any](obj T, err error) T {
	if err != nil {
		panic(err)
	}
	return obj
}

func first[T runtime.Object](w watch.Interface, err error) T {
	defer must(w, err).Stop()
	return (<-w.ResultChan()).Object.(T)
}
