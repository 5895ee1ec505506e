package judge

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
)

// ErrInternal is all that a caller hears of a defect.
var ErrInternal = status.Error(codes.Internal, "internal error of the policy engine; its log says more")

// A status travels in HTTP/2 trailers, its details in base64. Clients written in
// Java or C refuse more than 8 KiB of them by default, and then show INTERNAL.
const (
	maxDetailBytes      = 4 << 10
	maxDescriptionBytes = 1 << 10
)

// ToStatus maps what the engine returns to the code that the contract lists.
func ToStatus(err error) error {
	if invalid, ok := errors.AsType[*engine.InvalidRequestError](err); ok {
		return InvalidArgument(invalid.Violations...)
	}
	if unsupported, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		return status.Error(codes.Unimplemented, clip(unsupported.Error()))
	}
	return ErrInternal
}

// InvalidArgument is INVALID_ARGUMENT with google.rpc.BadRequest. The text gives
// the first violation and the number of others; the details hold as many as fit
// into the trailers of a response. There must be at least one.
func InvalidArgument(violations ...engine.FieldViolation) error {
	bad := &errdetails.BadRequest{}
	size := 0
	for _, v := range violations {
		fv := &errdetails.BadRequest_FieldViolation{Field: clip(v.Field), Description: clip(v.Description)}
		if size += proto.Size(fv); size > maxDetailBytes {
			break
		}
		bad.FieldViolations = append(bad.FieldViolations, fv)
	}
	st, err := status.New(codes.InvalidArgument, invalidText(violations)).WithDetails(bad)
	if err != nil {
		// Cannot be: the details are valid UTF-8, and the code is not OK.
		return ErrInternal
	}
	return st.Err()
}

func invalidText(violations []engine.FieldViolation) string {
	text := clip("invalid request: " + strings.TrimPrefix(violations[0].Field+": "+violations[0].Description, ": "))
	if others := len(violations) - 1; others > 0 {
		text += fmt.Sprintf(" (and %d more)", others)
	}
	return text
}

// clip makes a text short enough, and valid UTF-8.
func clip(s string) string {
	if len(s) > maxDescriptionBytes {
		s = s[:maxDescriptionBytes] + "…"
	}
	return strings.ToValidUTF8(s, "")
}
