package wire

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestUIDsConvertBothWays(t *testing.T) {
	const uid = types.UID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")
	b, err := UIDBytes(uid)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := UIDString(b); err != nil || back != uid {
		t.Errorf("got %q, %v; want %q", back, err, uid)
	}
	for _, bad := range []types.UID{"", "pod-1", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1fz", "0f1e2d3c4b5a-6978-8796-a5b4c3d2e1f0-"} {
		if _, err := UIDBytes(bad); err == nil {
			t.Errorf("%q is taken for a UID", bad)
		}
	}
}
