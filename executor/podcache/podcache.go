// Package podcache decodes and keeps of pods only what the executor reads of them.
//
// A pod on the wire is mostly its containers, its volumes, and who owns which of
// its fields; in memory that is hundreds of objects. Whoever watches every pod of
// a cluster to keep a few fields of each spends more time on making these objects
// and throwing them away than on anything else that is its own. So Serializer cuts
// the rest out of the bytes before they are decoded, and From turns what is left,
// of which an API object would still need some kilobytes, into a Pod of less than
// one.
package podcache

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// Serializer returns next, but for pods and lists of pods in protobuf: of those
// it decodes names, labels, annotations, owners, finalizers and times; the node;
// names and restart policies of init containers; the phase, and the conditions
// and container statuses without their texts. Everything else of them is empty.
// Other objects and other formats are decoded as ever, and nothing changes for
// what is sent.
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
