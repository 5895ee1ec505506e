package wire

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ErrUID says that a UID is not one the contract can carry: 16 bytes, written
// as 8-4-4-4-12 hexadecimal digits in lower case. An API server gives out no
// others, but takes any text in places that refer to a UID.
var ErrUID = errors.New("not a UID of 16 bytes")

// UIDBytes returns the 16 bytes of a UID.
func UIDBytes(uid types.UID) ([]byte, error) {
	s := string(uid)
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return nil, fmt.Errorf("%q: %w", s, ErrUID)
	}
	b, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	if err != nil || strings.ToLower(s) != s {
		return nil, fmt.Errorf("%q: %w", s, ErrUID)
	}
	return b, nil
}

// UIDString is the reverse of UIDBytes.
func UIDString(b []byte) (types.UID, error) {
	if len(b) != 16 {
		return "", fmt.Errorf("%d bytes: %w", len(b), ErrUID)
	}
	s := hex.EncodeToString(b)
	return types.UID(s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]), nil
}
