package newerfields

import (
	"bytes"
	"io"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// magic begins every Kubernetes object in protobuf. What follows it is a runtime.Unknown.
var magic = []byte("k8s\x00")

const (
	// rawNumber is the field of a runtime.Unknown that has the object, and itemsNumber that of a
	// list with its items.
	rawNumber, itemsNumber = 2, 2
	// prefix begins the selfLink of an object with unknown fields. Their bytes follow.
	prefix = "jobpolicy.dev/newer-fields:"
)

// Serializer returns next with another decoder and encoder of protobuf. Decoding keeps the unknown
// fields of Jobs, CronJobs, Leases and Secrets, and encoding any object writes those that it has.
// Encoding in another format leaves them out. Use it for the batch and for the core client: a client
// without it would send the text that stands for these fields.
func Serializer(next runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	infos := slices.Clone(next.SupportedMediaTypes())
	for i := range infos {
		infos[i].Serializer = serializer{infos[i].Serializer, infos[i].MediaType == runtime.ContentTypeProtobuf}
	}
	return negotiated{next, infos}
}

type negotiated struct {
	runtime.NegotiatedSerializer
	infos []runtime.SerializerInfo
}

func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo { return n.infos }

type serializer struct {
	runtime.Serializer
	protobuf bool
}

// Decode implements runtime.Decoder.
func (s serializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := s.Serializer.Decode(data, defaults, into)
	if body, ok := bytes.CutPrefix(data, magic); err == nil && ok && s.protobuf {
		keep(obj, value(body, rawNumber))
	}
	return obj, kind, err
}

// keep gives an object, or the objects of a list, the unknown fields of raw, from which it was decoded.
func keep(obj runtime.Object, raw []byte) {
	switch o := obj.(type) {
	case *batchv1.Job, *batchv1.CronJob, *coordinationv1.Lease, *corev1.Secret:
		set(o.(metav1.Object), messageOf(o).unknown(raw))
	case *batchv1.JobList:
		for i, item := range values(raw, itemsNumber) {
			keep(&o.Items[i], item)
		}
	case *batchv1.CronJobList:
		for i, item := range values(raw, itemsNumber) {
			keep(&o.Items[i], item)
		}
	}
}

// messageOf describes the type of an object; nil: it is no kind of messages.
func messageOf(obj any) *message { return messages()[reflect.TypeOf(obj).Elem()] }

// set lets an object have these unknown fields, and no others.
func set(obj metav1.Object, unknown []byte) {
	switch {
	case len(unknown) > 0:
		obj.SetSelfLink(prefix + string(unknown))
	case strings.HasPrefix(obj.GetSelfLink(), prefix):
		obj.SetSelfLink("")
	}
}

// of returns the unknown fields of an object; nil if it has none.
func of(obj metav1.Object) []byte {
	if unknown, ok := strings.CutPrefix(obj.GetSelfLink(), prefix); ok {
		return []byte(unknown)
	}
	return nil
}

// Encode implements runtime.Encoder.
func (s serializer) Encode(obj runtime.Object, w io.Writer) error {
	o, ok := obj.(metav1.Object)
	if !ok || of(o) == nil {
		return s.Serializer.Encode(obj, w)
	}
	bare := obj.DeepCopyObject()
	set(bare.(metav1.Object), nil)
	m := messageOf(obj)
	if m == nil || !s.protobuf {
		return s.Serializer.Encode(bare, w)
	}
	var typed bytes.Buffer
	if err := s.Serializer.Encode(bare, &typed); err != nil {
		return err
	}
	envelope := message{1: {known: true}, rawNumber: {known: true, within: m}, 3: {known: true}, 4: {known: true}}
	unknown := protowire.AppendBytes(protowire.AppendTag(nil, rawNumber, protowire.BytesType), of(o))
	_, err := w.Write(append(slices.Clone(magic), envelope.merge(typed.Bytes()[len(magic):], unknown)...))
	return err
}
