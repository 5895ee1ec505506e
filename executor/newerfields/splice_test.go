package newerfields_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
)

// invented are fields that no Kubernetes type has, by the path of the message that they are in: "/2/6" is
// the template of a Job, "/2/2.1" the second container of a pod. Each text is one field on the wire.
type invented map[string][]string

// marshaler is a message of a Kubernetes type.
type marshaler interface{ Marshal() ([]byte, error) }

// splice encodes an object as an API server would whose types have the invented fields, too. It calls
// visit for each message.
func splice(v reflect.Value, path string, fields invented, visit func(path string, v reflect.Value)) []byte {
	typed, err := v.Addr().Interface().(marshaler).Marshal()
	if err != nil {
		panic(err)
	}
	visit(path, v)
	var out []byte
	own, count := fields[path], map[protowire.Number]int{}
	for len(typed) > 0 {
		number, kind, n := protowire.ConsumeTag(typed)
		size := protowire.ConsumeFieldValue(number, kind, typed[n:])
		for len(own) > 0 && numberOf(own[0]) < number {
			out, own = append(out, own[0]...), own[1:]
		}
		if within, ok := messageAt(v, number, count[number]); ok {
			out = protowire.AppendTag(out, number, kind)
			out = protowire.AppendBytes(out, splice(within, fmt.Sprintf("%s/%d.%d", path, number, count[number]), fields, visit))
		} else {
			out = append(out, typed[:n+size]...)
		}
		count[number]++
		typed = typed[n+size:]
	}
	return append(out, strings.Join(own, "")...)
}

func numberOf(field string) protowire.Number {
	number, _, _ := protowire.ConsumeTag([]byte(field))
	return number
}

// values are structs that count as values: they have no fields of their own on the wire, or, as managed
// fields, are never written back.
var values = []string{"Time", "MicroTime", "Quantity", "ManagedFieldsEntry"}

// messageAt finds a message in the struct v by its number, and its place if it is in a list. The entries of
// maps are values, too.
func messageAt(v reflect.Value, number protowire.Number, place int) (reflect.Value, bool) {
	for i := range v.NumField() {
		tag := strings.Split(v.Type().Field(i).Tag.Get("protobuf"), ",")
		if len(tag) < 2 || tag[1] != strconv.Itoa(int(number)) {
			continue
		}
		f := v.Field(i)
		if f.Kind() == reflect.Slice {
			if f.Type().Elem().Kind() != reflect.Struct {
				return f, false
			}
			f = f.Index(place)
		}
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.Kind() != reflect.Struct || slices.Contains(values, f.Type().Name()) {
			return f, false
		}
		return f, true
	}
	return v, false
}

// invent draws fields in some of the messages of an object. wanted says which messages may have some.
func invent(t *rapid.T, obj any, wanted func(path string) bool) invented {
	var paths []string
	free := map[string][]int{}
	splice(reflect.ValueOf(obj).Elem(), "", nil, func(path string, v reflect.Value) {
		if wanted(path) {
			paths, free[path] = append(paths, path), freeNumbers(v)
		}
	})
	fields := invented{}
	if len(paths) == 0 {
		return fields
	}
	for n := range rapid.IntRange(0, 5).Draw(t, "invented") {
		path := rapid.SampledFrom(paths).Draw(t, "path")
		fields[path] = append(fields[path], field(t, free[path], n))
		slices.SortStableFunc(fields[path], func(a, b string) int { return int(numberOf(a) - numberOf(b)) })
	}
	return fields
}

// freeNumbers are numbers that no field of a message has: some in gaps, and greater ones.
func freeNumbers(v reflect.Value) []int {
	free := []int{300, 1000}
	for number := 1; number < 40; number++ {
		taken := false
		for i := range v.NumField() {
			tag := strings.Split(v.Type().Field(i).Tag.Get("protobuf"), ",")
			taken = taken || len(tag) > 1 && tag[1] == strconv.Itoa(number)
		}
		if !taken {
			free = append(free, number)
		}
	}
	return free
}

// field draws an invented field. No two are equal: each has the value n.
func field(t *rapid.T, free []int, n int) string {
	number := protowire.Number(rapid.SampledFrom(free).Draw(t, "number"))
	text := []byte(strconv.Itoa(n))
	switch rapid.IntRange(0, 3).Draw(t, "type") {
	case 0:
		return string(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(n)))
	case 1:
		return string(protowire.AppendFixed32(protowire.AppendTag(nil, number, protowire.Fixed32Type), uint32(n)))
	case 2:
		return string(protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), uint64(n)))
	}
	return string(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), text))
}

// draw fills an object as an API server may have stored it. It is decoded once, so that its quantities
// are in the form in which they are encoded again.
func draw[T any](t *rapid.T) *T {
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(rapid.Int64().Draw(t, "seed")), scheme.Codecs)
	filled, stored := new(T), new(T)
	random.Fill(filled)
	if object, ok := any(filled).(metav1.Object); ok {
		object.SetSelfLink("")
	}
	raw, err := any(filled).(marshaler).Marshal()
	if err == nil {
		err = any(stored).(interface{ Unmarshal(b []byte) error }).Unmarshal(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// kept reports whether an object that is written back keeps the invented fields of a message: those in the lists
// of a status are not kept.
func kept(path string) bool {
	return !strings.HasPrefix(path, "/3.0/") || path == uncountedPath
}

const uncountedPath = "/3.0/8.0" // status.uncountedTerminatedPods of a Job
