package apiserver

import (
	"context"
	"encoding/hex"
	"hash/fnv"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
)

// UIDs and generated names follow from what they are for and from how many were
// drawn for it before. So they do not depend on the order in which requests
// about different objects arrive.

// longestRoot is how much of generateName is used: names have 63 characters at
// most, 5 of them generated (upstream's names.SimpleNameGenerator).
const (
	longestRoot   = 63 - suffixLength
	suffixLength  = 5
	suffixLetters = "bcdfghjklmnpqrstvwxz2456789"
)

// draw returns a number that is different for each root, and each time.
// The caller holds the lock.
func (s *Server) draw(root string) uint64 {
	n := s.ordinals[root]
	s.ordinals[root] = n + 1
	h := fnv.New64a()
	_, _ = h.Write([]byte(root))
	_, _ = h.Write([]byte("#" + strconv.FormatUint(n, 10)))
	return scatter(h.Sum64())
}

// scatter spreads what FNV leaves close together (the finalizer of SplitMix64).
func scatter(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// newUID returns the UID of the next object with this key. The caller holds the
// lock.
func (s *Server) newUID(key string) types.UID {
	low := s.draw("uid:" + key)
	high := scatter(low + 1)
	var raw [16]byte
	for i := range 8 {
		raw[i], raw[8+i] = byte(high>>(8*i)), byte(low>>(8*i))
	}
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80 // Version 4, as upstream's.
	text := hex.EncodeToString(raw[:])
	return types.UID(text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:])
}

// generateName returns a name that nobody has.
func (s *Server) generateName(t *table, namespace, root string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		name := s.drawName(t.store.resource+"/"+namespace+"/", root)
		if t.find(t.store.key(namespace, name)) == nil {
			return name
		}
	}
}

func (s *Server) drawName(place, root string) string {
	if len(root) > longestRoot {
		root = root[:longestRoot]
	}
	number := s.draw("name:" + place + root)
	var suffix [suffixLength]byte
	for i := range suffix {
		suffix[i] = suffixLetters[number%uint64(len(suffixLetters))]
		number /= uint64(len(suffixLetters))
	}
	return root + string(suffix[:])
}

// earlyUID is a strategy that needs the UID before the object is stored: a Job's
// selector is made of it. For all others the storage draws it.
type earlyUID struct {
	rest.RESTCreateStrategy
	store *store
}

// PrepareForCreate implements rest.RESTCreateStrategy. The registry has drawn a
// UID at random.
func (e earlyUID) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if m, err := meta.Accessor(obj); err == nil {
		s := callerFrom(ctx).server
		s.mu.Lock()
		m.SetUID(s.newUID(e.store.key(m.GetNamespace(), m.GetName())))
		s.mu.Unlock()
	}
	e.RESTCreateStrategy.PrepareForCreate(ctx, obj)
}
