package engine_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// FuzzDecideJob feeds bytes as they may arrive over the wire. Whatever they
// are, the engine does not panic, and it answers with a decision that keeps
// its promises or with one of its two errors, in bounded time.
func FuzzDecideJob(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("garbage"))
	for _, seed := range seeds(f) {
		f.Add(wireBytes(f, seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &request{}
		if proto.Unmarshal(data, req) != nil {
			return
		}
		decideSafely(t, req)
	})
}

// FuzzDecideJobFields makes a request field by field of the bytes, so that
// most requests pass validation and the fuzzer gets deep into the engine.
func FuzzDecideJobFields(f *testing.F) {
	f.Add([]byte{})
	for i := range byte(8) {
		seed := make([]byte, 512)
		for j := range seed {
			seed[j] = byte(j*j)*i + byte(j)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &maker{data: data}
		req := validRequest(t)
		m.change(req.ProtoReflect(), 0)
		m.mend(req)
		decideSafely(t, req)
	})
}

// seeds are requests that reach every part of the engine.
func seeds(f *testing.F) []*request {
	list := []*request{validRequest(f), steady(f, 3), withFinished(steady(f, 3), 20), scaleDown(f, 8)}
	huge := newScene()
	huge.mustTell(f, "job mode=Indexed completions=2147483647 parallelism=2147483647\nsettings maxChanges=100000 maxUncounted=100000\n"+
		"status start=0s completed=0-2147483645 active=2147483647 succeeded=2147483647 failed=2147483647\npods active=2147483647 restarts=2147483647")
	list = append(list, huge.req)
	for _, declared := range []string{criteriaMet, failureTarget, complete, suspended} {
		s := newScene()
		s.mustTell(f, "job completions=1\nstatus start=0s uncountedFailed=a\ncondition "+declared+"\nfinished b phase=Failed\nrow c\npods active=1")
		list = append(list, s.req)
	}
	return list
}

// decideSafely decides and checks what must hold of any answer.
func decideSafely(t *testing.T, req *request) {
	before := proto.CloneOf(req)
	started := time.Now()
	resp, err := engine.DecideJob(req)
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("a decision took %s for %d bytes", took, proto.Size(req))
	}
	if !proto.Equal(before, req) {
		t.Errorf("the request was changed:\n%s", render(req))
	}
	if err != nil {
		var invalid *engine.InvalidRequestError
		var unsupported *engine.UnsupportedError
		if resp != nil || (!errors.As(err, &invalid) && !errors.As(err, &unsupported)) {
			t.Errorf("DecideJob = %v, %v", resp, err)
		}
		if invalid != nil && len(invalid.Violations) == 0 {
			t.Error("invalid, but not why")
		}
		return
	}
	if broken := brokenPromises(req, resp); len(broken) > 0 {
		t.Errorf("%v\nrequest:\n%s\nresponse:\n%s", broken, render(req), render(resp))
	}
	again, err := engine.DecideJob(req)
	if err != nil || string(wireBytes(t, again)) != string(wireBytes(t, resp)) {
		t.Errorf("I7: another answer to the same request: %v", err)
	}
}

// A maker draws values from bytes; zeros when there are none left.
type maker struct{ data []byte }

func (m *maker) byte() byte {
	if len(m.data) == 0 {
		return 0
	}
	b := m.data[0]
	m.data = m.data[1:]
	return b
}

func (m *maker) uint64() uint64 {
	var b [8]byte
	m.data = m.data[copy(b[:], m.data):]
	return binary.LittleEndian.Uint64(b[:])
}

// number draws a small number, or one of the corners.
func (m *maker) number() int64 {
	switch b := m.byte(); {
	case b < 200:
		return int64(b % 12)
	case b < 210:
		return 1<<31 - 1
	case b < 220:
		return 1<<31 - 2
	case b < 225:
		return -int64(b)
	default:
		return int64(int32(m.uint64()))
	}
}

// change sets, clears or leaves each field of a message.
func (m *maker) change(msg protoreflect.Message, depth int) {
	fields := msg.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch m.byte() % 4 {
		case 0:
			continue
		case 1:
			if fd.HasPresence() && depth > 0 {
				msg.Clear(fd)
				continue
			}
		}
		if fd.IsList() {
			m.changeList(msg.Mutable(fd).List(), fd, depth)
			continue
		}
		if fd.Message() != nil {
			m.changeMessage(msg.Mutable(fd).Message(), depth)
			continue
		}
		msg.Set(fd, m.scalar(fd))
	}
}

func (m *maker) changeList(list protoreflect.List, fd protoreflect.FieldDescriptor, depth int) {
	list.Truncate(min(list.Len(), int(m.byte()%4)))
	for range m.byte() % 4 {
		if fd.Message() == nil {
			list.Append(m.scalar(fd))
			continue
		}
		list.Append(list.NewElement())
	}
	for i := range list.Len() {
		if fd.Message() != nil {
			m.changeMessage(list.Get(i).Message(), depth)
		}
	}
}

func (m *maker) changeMessage(msg protoreflect.Message, depth int) {
	switch known := msg.Interface().(type) {
	case *timestamppb.Timestamp:
		known.Seconds, known.Nanos = epoch.Unix()+int64(m.byte())-30, int32(m.byte())*1_000_000
		if m.byte() == 255 {
			known.Seconds = int64(m.uint64())
		}
	case *durationpb.Duration:
		known.Seconds, known.Nanos = int64(m.byte()), 1_000_000
	case *jobpolicyv1.IndexSet:
		m.changeSet(known)
	default:
		m.change(msg, depth+1)
	}
}

// changeSet makes a set that is well-formed, nearly always.
func (m *maker) changeSet(set *jobpolicyv1.IndexSet) {
	set.Ranges = nil
	next := int64(0)
	for range m.byte() % 4 {
		first := next + m.number()
		last := first + m.number()%5
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: int32(first), Last: int32(last)})
		next = last + 1
	}
}

func (m *maker) scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(m.byte()%2 == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int(m.byte()) % fd.Enum().Values().Len()))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(m.number()))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(m.number())
	case protoreflect.StringKind:
		names := []string{criteriaMet, failureTarget, complete, failed, suspended, "DisruptionTarget", "7", ""}
		return protoreflect.ValueOfString(names[int(m.byte())%len(names)])
	default:
		return protoreflect.ValueOfBytes(numberedUID(int(m.byte())))
	}
}

// mend undoes what makes nearly every drawn request invalid.
func (m *maker) mend(req *request) {
	req.Job = &jobpolicyv1.JobRef{Uid: uid("job"), Namespace: "ns", Name: "job"}
	req.Freshness = nil
	if req.Pods == nil {
		req.Pods = &jobpolicyv1.PodSummary{}
	}
	seen := map[string]bool{}
	for i, pod := range req.UnaccountedPods {
		pod.Uid = numberedUID(i)
		seen[string(pod.Uid)] = true
		pod.Deleting = true
		pod.FinishedTime = at(time.Duration(m.byte()) * time.Second)
	}
	for i, pod := range req.GetActivePods().GetPods() {
		pod.Uid = numberedUID(100 + i)
		pod.Phase = pod.Phase % 3
	}
	if req.ActivePods != nil {
		req.Pods.Active = int32(len(req.ActivePods.Pods))
		req.ActivePods.Truncated = false
	}
	req.Pods.Ready, req.Pods.TrackedActive = min(req.Pods.Ready, req.Pods.Active), min(req.Pods.TrackedActive, req.Pods.Active)
	if m.byte()%8 != 0 && req.Spec != nil {
		req.Spec.Deleting = false
	}
	var confirmed [][]byte
	for _, uid := range req.ConfirmedReleases {
		if !seen[string(uid)] {
			confirmed = append(confirmed, uid)
		}
	}
	req.ConfirmedReleases = confirmed
}
