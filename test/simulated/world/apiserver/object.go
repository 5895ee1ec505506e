package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// A version is one state of an object. It is never changed once it is committed,
// so everybody may share it.
type version struct {
	key    string
	number uint64
	// internal is the form that registries use, external the form for the wire and the
	// world. They share memory.
	internal, external runtime.Object
	// bytes are what a real server would store: Kubernetes' protobuf of the
	// external object, without its resource version.
	bytes []byte

	encodings encodings
}

// stored is how each type of the API reads and writes its protobuf.
type stored interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// freeze makes a version of an object that a registry wants to store. It encodes and decodes
// the object, as a real server does, so that nothing is shared with the request, times have
// whole seconds, and empty fields are nil.
func (r *store) freeze(key string, obj runtime.Object) (*version, error) {
	data, err := r.encode(obj)
	if err != nil {
		return nil, err
	}
	return r.thaw(key, data)
}

// encode returns the bytes of an internal object without its resource version.
func (r *store) encode(obj runtime.Object) ([]byte, error) {
	external, err := legacyscheme.Scheme.UnsafeConvertToVersion(obj, r.kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(external)
	if err != nil {
		return nil, err
	}
	// The conversion makes a new object, whose metadata is its own.
	m.SetResourceVersion("")
	m.SetSelfLink("")
	return external.(stored).Marshal()
}

func (r *store) thaw(key string, data []byte) (*version, error) {
	external, err := legacyscheme.Scheme.New(r.kind)
	if err != nil {
		return nil, err
	}
	if err := external.(stored).Unmarshal(data); err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(external)
	external.GetObjectKind().SetGroupVersionKind(r.kind)
	return &version{key: key, external: external, bytes: data}, nil
}

// setNumber sets the version's resource version: its place among the writes.
func (v *version) setNumber(number uint64) error {
	v.number = number
	m, err := meta.Accessor(v.external)
	if err != nil {
		return err
	}
	m.SetResourceVersion(strconv.FormatUint(number, 10))
	v.internal, err = legacyscheme.Scheme.UnsafeConvertToVersion(v.external, hub(v.external.GetObjectKind().GroupVersionKind()))
	return err
}

func hub(kind schema.GroupVersionKind) schema.GroupVersion {
	return schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
}

// renumbered returns the same state with another number, as a watch shows an object that is
// gone. The copy is shallow: what it points to is shared.
func (v *version) renumbered(number uint64) *version {
	text := strconv.FormatUint(number, 10)
	return &version{
		key: v.key, number: number, bytes: v.bytes,
		internal: withVersion(v.internal, text), external: withVersion(v.external, text),
	}
}

func withVersion(obj runtime.Object, resourceVersion string) runtime.Object {
	other := shallow(obj)
	if m, err := meta.Accessor(other); err == nil {
		m.SetResourceVersion(resourceVersion)
	}
	return other
}

// shallow returns a shallow copy: only the fields of the object itself may be changed, and
// nothing that they point to.
func shallow(obj runtime.Object) runtime.Object {
	other := reflect.New(reflect.TypeOf(obj).Elem())
	other.Elem().Set(reflect.ValueOf(obj).Elem())
	return other.Interface().(runtime.Object)
}

func (v *version) meta() metav1.Object {
	m, err := meta.Accessor(v.external)
	if err != nil {
		panic(fmt.Sprintf("%T has no metadata: %v", v.external, err)) // A programming error.
	}
	return m
}

// encodings are the forms in which a version has been sent, each made once.
type encodings struct {
	mu     sync.Mutex
	byForm map[runtime.Identifier][]byte
}

// shared is a version on its way to the watches (runtime.CacheableObject).
type shared struct{ *version }

var _ runtime.CacheableObject = shared{}

// CacheEncode writes the version in the form of the identifier.
func (o shared) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	data, err := o.encoded(id, encode)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func (o shared) encoded(id runtime.Identifier, encode func(runtime.Object, io.Writer) error) ([]byte, error) {
	e := &o.encodings
	e.mu.Lock()
	defer e.mu.Unlock()
	if data, known := e.byForm[id]; known {
		return data, nil
	}
	var b bytes.Buffer
	if err := encode(shallow(o.external), &b); err != nil { // Encoders write the kind, for a while.
		return nil, err
	}
	if e.byForm == nil {
		e.byForm = map[runtime.Identifier][]byte{}
	}
	e.byForm[id] = b.Bytes()
	return b.Bytes(), nil
}

// GetObject returns the object itself.
func (o shared) GetObject() runtime.Object { return o.internal }

// GetObjectKind returns the kind of the object.
func (o shared) GetObjectKind() schema.ObjectKind { return o.internal.GetObjectKind() }

// DeepCopyObject returns the same: a version never changes.
func (o shared) DeepCopyObject() runtime.Object { return o }

// GetObjectMeta returns the object's metadata.
func (o shared) GetObjectMeta() metav1.Object { return o.meta() }
