package newerfields_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"jobpolicy.dev/executor/newerfields"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// plain is the serializer of client-go, and keeping that of this package.
var plain, keeping = of(scheme.Codecs, runtime.ContentTypeProtobuf), of(newerfields.Serializer(scheme.Codecs), runtime.ContentTypeProtobuf)

func of(codecs runtime.NegotiatedSerializer, mediaType string) runtime.Serializer {
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		panic("no serializer of " + mediaType)
	}
	return info.Serializer
}

// onWire is the answer of an API server that has an object of these bytes.
func onWire(kind schema.GroupVersionKind, raw []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}, Raw: raw}
	body, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), body...)
}

func decode[T runtime.Object](t rapid.TB, s runtime.Serializer, data []byte) T {
	t.Helper()
	obj, _, err := s.Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(T)
}

func encode(t rapid.TB, s runtime.Serializer, kind schema.GroupVersionKind, obj runtime.Object) []byte {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(kind)
	data, err := runtime.Encode(s, obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// marshal encodes an object with invented fields.
func marshal(obj any, fields invented) []byte {
	return splice(reflect.ValueOf(obj).Elem(), "", fields, func(string, reflect.Value) {})
}

var (
	jobKind     = batchv1.SchemeGroupVersion.WithKind("Job")
	cronJobKind = batchv1.SchemeGroupVersion.WithKind("CronJob")
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
)

// of the template moves the fields of a template to the object that is made of it. That has the template's
// spec and the new fields of its metadata, and no lists of its metadata.
func (fields invented) of(template string) invented {
	made := invented{}
	for path, list := range fields {
		path, ok := strings.CutPrefix(path, template)
		if ok && (path == "/1.0" || strings.HasPrefix(path, "/2.0")) {
			made[path] = list
		}
	}
	return made
}

func equal(t rapid.TB, what string, want, got []byte) {
	t.Helper()
	if !bytes.Equal(want, got) {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(fmt.Sprintf("%q", want), fmt.Sprintf("%q", got)))
	}
}

// A pod has every field of its template, once, and is else as it is without them. A Job that is written
// back is as it was read.
func TestAPodHasEveryFieldOfItsTemplate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := draw[batchv1.Job](t)
		fields := invent(t, stored, kept)
		answer := onWire(jobKind, marshal(stored, fields))
		read := decode[*batchv1.Job](t, keeping, answer)
		equal(t, "the Job, written back", answer, encode(t, keeping, jobKind, read.DeepCopy()))

		made := wire.NewPod{Index: rapid.SampledFrom([]int32{podcache.NoIndex, 0, 7}).Draw(t, "index")}
		typed := made.From(decode[*batchv1.Job](t, plain, answer))
		pod := made.From(read)
		equal(t, "the pod", onWire(podKind, marshal(typed, fields.of("/2.0/6.0"))), encode(t, keeping, podKind, pod.DeepCopy()))
	})
}

// The same holds for the Job of a CronJob, and for the pod of that Job.
func TestAJobHasEveryFieldOfItsTemplate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := draw[batchv1.CronJob](t)
		fields := invent(t, stored, kept)
		answer := onWire(cronJobKind, marshal(stored, fields))
		cron := decode[*batchv1.CronJob](t, keeping, answer)
		equal(t, "the CronJob, written back", answer, encode(t, keeping, cronJobKind, cron.DeepCopy()))

		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: cron.Spec.JobTemplate.Spec}
		want := onWire(jobKind, marshal(job, fields.of("/2.0/5.0")))
		newerfields.Job(job, cron)
		equal(t, "the Job", want, encode(t, keeping, jobKind, job))
	})
}

// Each object of a list has its own fields.
func TestListsKeepFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := &batchv1.JobList{}
		for range rapid.IntRange(0, 3).Draw(t, "jobs") {
			stored.Items = append(stored.Items, *draw[batchv1.Job](t))
		}
		fields := invent(t, stored, func(path string) bool {
			return len(path) > 1 && kept(path[strings.Index(path[1:], "/")+1:]) && strings.HasPrefix(path, "/2.")
		})
		list := decode[*batchv1.JobList](t, keeping, onWire(batchv1.SchemeGroupVersion.WithKind("JobList"), marshal(stored, fields)))
		for i := range list.Items {
			want := onWire(jobKind, marshal(&stored.Items[i], fields.below(fmt.Sprint("/2.", i))))
			equal(t, fmt.Sprint("Job ", i), want, encode(t, keeping, jobKind, &list.Items[i]))
		}
	})
}

// below are the fields of what has a path, by their paths in it.
func (fields invented) below(root string) invented {
	out := invented{}
	for path, list := range fields {
		if rest, ok := strings.CutPrefix(path, root); ok && (rest == "" || rest[0] == '/') {
			out[rest] = list
		}
	}
	return out
}

// What an object has as its selfLink decides nothing: only what was decoded counts.
func TestASelfLinkIsNoTemplate(t *testing.T) {
	fields := invented{"/2.0/6.0/2.0": {"\xc0\x3e\x07"}}
	read := decode[*batchv1.Job](t, keeping, onWire(jobKind, marshal(&batchv1.Job{}, fields)))
	if read.GetSelfLink() == "" {
		t.Fatal("no field is kept, so this test shows nothing")
	}
	forged := &batchv1.Job{}
	forged.SetSelfLink(read.GetSelfLink())
	if got := decode[*batchv1.Job](t, keeping, onWire(jobKind, marshal(forged, nil))); got.GetSelfLink() != "" {
		t.Errorf("the Job has %q, which somebody wrote there", got.GetSelfLink())
	}
	data := encode(t, of(newerfields.Serializer(scheme.Codecs), runtime.ContentTypeJSON), jobKind, read)
	if bytes.Contains(data, []byte("selfLink")) {
		t.Errorf("as JSON the Job has a selfLink: %s", data)
	}
}

// FuzzDecode decodes arbitrary bytes as a Job and as a list. What is decoded is the same as without this
// package, and what is encoded is decoded to the same object again.
func FuzzDecode(f *testing.F) {
	for _, fields := range []invented{nil, {"/2.0/6.0/2.0": {"\xc0\x3e\x07"}}, {"/1.0": {"\xc2\x3e\x01x"}}} {
		raw := marshal(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, fields)
		f.Add(raw, "Job")
		f.Add(append([]byte{0x12, byte(len(raw))}, raw...), "JobList")
	}
	f.Fuzz(func(t *testing.T, raw []byte, kind string) {
		data := onWire(batchv1.SchemeGroupVersion.WithKind(kind), raw)
		want, _, err := plain.Decode(data, nil, nil)
		got, _, keepingErr := keeping.Decode(data, nil, nil)
		if fmt.Sprint(err) != fmt.Sprint(keepingErr) {
			t.Fatalf("error %v, want %v", keepingErr, err)
		}
		job, ok := got.(*batchv1.Job)
		if !ok || strings.HasPrefix(want.(*batchv1.Job).GetSelfLink(), "jobpolicy.dev/") {
			return
		}
		back := decode[*batchv1.Job](t, plain, encode(t, keeping, jobKind, job))
		if again := decode[*batchv1.Job](t, plain, encode(t, plain, jobKind, want)); !apiequality.Semantic.DeepEqual(again, back) {
			t.Errorf("(-want +got):\n%s", cmp.Diff(again, back))
		}
	})
}
