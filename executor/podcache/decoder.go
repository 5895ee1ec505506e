package podcache

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// magic begins every Kubernetes object in protobuf. What follows it is a
// runtime.Unknown: the type, and the object's bytes.
var magic = []byte("k8s\x00")

// Field numbers of runtime.Unknown and of its type.
const (
	fieldType       = 1
	fieldAPIVersion = 1
	fieldKind       = 2
)

type decoder struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return d.Serializer.Decode(stripFields(data), defaults, into)
}

// stripFields returns data without the fields that are not kept. It returns data itself if that is
// not a pod or a list of pods, or cannot be read. It never changes data.
func stripFields(data []byte) []byte {
	body, ok := bytes.CutPrefix(data, magic)
	if !ok {
		return data
	}
	kept, ok := envelope(body)
	if !ok {
		return data
	}
	out := make([]byte, 0, len(data)/2)
	if out, ok = kept.cut(append(out, magic...), body); !ok {
		return data
	}
	return out
}

// envelope says what to keep of a runtime.Unknown. ok is false if it has no pods.
func envelope(body []byte) (kept message, ok bool) {
	number, kind, n := protowire.ConsumeTag(body)
	if n < 0 || number != fieldType || kind != protowire.BytesType {
		return nil, false // Kubernetes writes the type first.
	}
	meta, _ := protowire.ConsumeBytes(body[n:])
	switch string(field(meta, fieldAPIVersion)) + "/" + string(field(meta, fieldKind)) {
	case "v1/Pod":
		return podEnvelope, true
	case "v1/PodList":
		return podListEnvelope, true
	default:
		return nil, false
	}
}

// field returns a field of a message that consists of strings.
func field(m []byte, wanted protowire.Number) []byte {
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		if n < 0 || kind != protowire.BytesType {
			return nil
		}
		value, size := protowire.ConsumeBytes(m[n:])
		if size < 0 {
			return nil
		}
		if number == wanted {
			return value
		}
		m = m[n+size:]
	}
	return nil
}

// cut appends the fields of m that are kept to out, in order. ok is false if m is
// malformed.
func (kept message) cut(out, m []byte) (_ []byte, ok bool) {
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			return nil, false
		}
		size := protowire.ConsumeFieldValue(number, kind, m[n:])
		if size < 0 {
			return nil, false
		}
		tag, value := m[:n], m[n:n+size]
		m = m[n+size:]
		within, keep := kept[number]
		switch {
		case !keep:
		case within == nil || kind != protowire.BytesType:
			out = append(append(out, tag...), value...)
		default:
			content, _ := protowire.ConsumeBytes(value)
			if _, only := within[onlyFirstOwner]; only && !bytes.Contains(content, firstOwner) {
				continue
			}
			if _, only := within[nothingElse]; only {
				out = appendFirstOwner(append(out, tag...), content)
				continue
			}
			if out, ok = within.cutField(append(out, tag...), content); !ok {
				return nil, false
			}
		}
	}
	return out, true
}

// appendFirstOwner appends firstOwner as the value of a field if the value contains it, and
// an empty value otherwise.
func appendFirstOwner(out, value []byte) []byte {
	if !bytes.Contains(value, firstOwner) {
		return protowire.AppendBytes(out, nil)
	}
	return protowire.AppendBytes(out, firstOwner)
}

// cutField appends what is kept of m, and its length before it.
func (kept message) cutField(out, m []byte) (_ []byte, ok bool) {
	start := len(out)
	if out, ok = kept.cut(out, m); !ok {
		return nil, false
	}
	var length [10]byte
	return slices.Insert(out, start, protowire.AppendVarint(length[:0], uint64(len(out)-start))...), true
}
