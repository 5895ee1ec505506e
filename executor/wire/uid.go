package wire

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// ErrUID says that a UID is not one the contract can carry: 16 bytes, written
// as 8-4-4-4-12 hexadecimal digits in lower case. An API server gives out no
// others, but takes any text in places that refer to a UID.
var ErrUID = errors.New("not a UID of 16 bytes")

// UIDBytes returns the 16 bytes of a UID.
func UIDBytes(uid types.UID) ([]byte, error) {
	id, err := uuid.Parse(string(uid))
	if err != nil || id.String() != string(uid) {
		return nil, fmt.Errorf("%q: %w", string(uid), ErrUID)
	}
	return id[:], nil
}

// UIDString is the reverse of UIDBytes.
func UIDString(b []byte) (types.UID, error) {
	id, err := uuid.FromBytes(b)
	if err != nil {
		return "", fmt.Errorf("%d bytes: %w", len(b), ErrUID)
	}
	return types.UID(id.String()), nil
}
