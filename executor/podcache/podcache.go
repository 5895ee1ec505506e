// Package podcache decodes and keeps only those parts of pods that the executor reads.
//
// A pod on the wire is mostly containers, volumes and field ownership; in memory these
// are hundreds of objects. A program that watches every pod of a cluster, and reads a
// few fields of each, spends most of its own time on making these objects and collecting
// them. So Serializer cuts the other fields out of the bytes before they are decoded.
// From converts the result, which would take some kilobytes as an API object, to a Pod of
// less than one kilobyte.
//
// Weighed against a transform of the informer, which gets a pod that was decoded whole,
// and metadata informers, which have no status.
package podcache

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// Serializer returns next with another decoder for pods and lists of pods in protobuf. It
// decodes names, labels, annotations, owners, finalizers and times; the field manager that
// added the first owner; the node and the host name; names and restart policies of init containers; the
// phase and the start time; and conditions and container statuses with their reasons, of messages only those of containers that wait.
// All other fields of pods stay empty. Other objects, other formats and encoding do not
// change.
func Serializer(next runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	infos := slices.Clone(next.SupportedMediaTypes())
	for i := range infos {
		if infos[i].MediaType == runtime.ContentTypeProtobuf {
			infos[i].Serializer = decoder{infos[i].Serializer}
		}
	}
	return negotiated{next, infos}
}

type negotiated struct {
	runtime.NegotiatedSerializer
	infos []runtime.SerializerInfo
}

func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo { return n.infos }
