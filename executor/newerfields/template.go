package newerfields

import (
	"google.golang.org/protobuf/encoding/protowire"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Numbers of fields: those of an object and of a template are the same.
const (
	metadataNumber    = 1
	specNumber        = 2
	podTemplateNumber = 6 // in a JobSpec
	jobTemplateNumber = 5 // in a CronJobSpec
)

// Pod gives a pod the unknown fields of the pod template of its Job. Elements of lists that are in
// the template must have the same places in the pod.
func Pod(pod *corev1.Pod, job *batchv1.Job) {
	inherit(pod, job, podTemplateNumber)
}

// Job gives a Job the unknown fields of the CronJob's Job template.
func Job(job *batchv1.Job, cron *batchv1.CronJob) {
	inherit(job, cron, jobTemplateNumber)
}

// inherit gives made the unknown fields of the template in the spec of from. Of the template's
// metadata it takes the unknown fields only, and not those of lists: an object that is made of a
// template has owners of its own.
func inherit(made, from metav1.Object, number protowire.Number) {
	whole := of(from)
	if whole == nil {
		return
	}
	template := value(value(whole, specNumber), number)
	var out []byte
	metadata := messageOf(made).field(metadataNumber).within
	for p, rest, ok := next(value(template, metadataNumber)); ok; p, rest, ok = next(rest) {
		if !metadata.field(uint64(p.number)).known {
			out = append(out, p.whole...)
		}
	}
	if len(out) > 0 {
		out = protowire.AppendBytes(protowire.AppendTag(nil, metadataNumber, protowire.BytesType), out)
	}
	if spec := value(template, specNumber); len(spec) > 0 {
		out = protowire.AppendBytes(protowire.AppendTag(out, specNumber, protowire.BytesType), spec)
	}
	set(made, out)
}
