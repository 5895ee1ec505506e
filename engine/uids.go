package engine

// kubernetesUIDBytes is the length of the UIDs that Kubernetes gives out.
const kubernetesUIDBytes = 16

// uids is a set of UIDs. UIDs of Kubernetes need no allocation each, because a
// request may hold 100000.
type uids struct {
	kubernetes map[[kubernetesUIDBytes]byte]bool
	others     map[string]bool
}

// newUIDs returns an empty set with room for n UIDs of Kubernetes.
func newUIDs(n int) uids {
	return uids{kubernetes: make(map[[kubernetesUIDBytes]byte]bool, n), others: map[string]bool{}}
}

func (s uids) has(uid []byte) bool {
	if len(uid) == kubernetesUIDBytes {
		return s.kubernetes[[kubernetesUIDBytes]byte(uid)]
	}
	return s.others[string(uid)]
}

func (s uids) add(uid []byte) {
	if len(uid) == kubernetesUIDBytes {
		s.kubernetes[[kubernetesUIDBytes]byte(uid)] = true
		return
	}
	s.others[string(uid)] = true
}
