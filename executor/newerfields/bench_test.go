package newerfields_test

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
)

// ordinaryJob is a Job as users write it: one container with some variables, resources and a volume.
func ordinaryJob() *batchv1.Job {
	labels := map[string]string{"app": "report", "team": "data", batchv1.ControllerUidLabel: "0b6f8f8e-6a52-4c43-9d0b-3f1f4a1f3c0a", batchv1.JobNameLabel: "report"}
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "report", Namespace: "data", UID: "0b6f8f8e-6a52-4c43-9d0b-3f1f4a1f3c0a", ResourceVersion: "123456", Generation: 1, Labels: labels,
			Annotations:   map[string]string{"example.com/owner": "data"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:spec":{"f:template":{"f:spec":{%0600d}}}}`, 0))}},
		},
		Spec: batchv1.JobSpec{
			Parallelism: new(int32(5)), Completions: new(int32(100)), BackoffLimit: new(int32(6)), CompletionMode: new(batchv1.IndexedCompletion),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "0b6f8f8e-6a52-4c43-9d0b-3f1f4a1f3c0a"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler",
					TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true)},
					Volumes: []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
					Containers: []corev1.Container{{
						Name: "main", Image: "example.com/report:1.2.3", Command: []string{"report", "--all"},
						Env:       []corev1.EnvVar{{Name: "REGION", Value: "eu"}, {Name: "LEVEL", Value: "info"}, {Name: "OUT", Value: "/data/out"}},
						Resources: corev1.ResourceRequirements{Requests: resources, Limits: resources}, VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/data"}},
						TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
					}},
				},
			},
		},
		Status: batchv1.JobStatus{StartTime: &metav1.Time{}, Active: 5, Succeeded: 17, Ready: new(int32(5)), CompletedIndexes: "0-16"},
	}
}

// BenchmarkDecode decodes a Job that has no unknown field, as almost all have none, and one with some.
func BenchmarkDecode(b *testing.B) {
	job := ordinaryJob()
	ordinary, newer := onWire(jobKind, marshal(job, nil)), onWire(jobKind, marshal(job, invented{"/2.0/6.0/2.0/2.0": {"\xc0\x3e\x07"}}))
	b.Run("plain", func(b *testing.B) { benchDecode(b, plain, ordinary) })
	b.Run("keeping", func(b *testing.B) { benchDecode(b, keeping, ordinary) })
	b.Run("keeping unknown fields", func(b *testing.B) { benchDecode(b, keeping, newer) })
}

func benchDecode(b *testing.B, s runtime.Serializer, data []byte) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Decode(data, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreate makes and encodes the pod of such a Job.
func BenchmarkCreate(b *testing.B) {
	job := ordinaryJob()
	newer := decode[*batchv1.Job](b, keeping, onWire(jobKind, marshal(job, invented{"/2.0/6.0/2.0/2.0": {"\xc0\x3e\x07"}})))
	b.Run("plain", func(b *testing.B) { benchCreate(b, plain, job) })
	b.Run("keeping", func(b *testing.B) { benchCreate(b, keeping, job) })
	b.Run("keeping unknown fields", func(b *testing.B) { benchCreate(b, keeping, newer) })
}

func benchCreate(b *testing.B, s runtime.Serializer, job *batchv1.Job) {
	b.ReportAllocs()
	made := wire.NewPod{Index: podcache.NoIndex}
	for b.Loop() {
		encode(b, s, podKind, made.From(job))
	}
}
