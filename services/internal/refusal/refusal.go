// Package refusal makes the errors that the policy service returns: a gRPC code,
// a text for people, and the details that the contract promises to programs.
package refusal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/logging"
)

// A status travels in HTTP/2 trailers, its details in base64. Clients written in
// Java or C refuse more than 8 KiB of them by default, and then show INTERNAL.
const (
	maxDetailBytes      = 4 << 10
	maxDescriptionBytes = 1 << 10
	maxMetadataBytes    = 253
)

// A caller tries again soon if it waits for room, and slowly if it waits for a person to
// change something.
const (
	soon   = time.Second
	slowly = time.Minute
)

// retryDelays are the reasons for which the same call may succeed later, and how long to
// wait before it. For all other reasons the same call would get the same error.
var retryDelays = map[jobpolicyv1.ErrorReason]time.Duration{
	jobpolicyv1.ErrorReason_ERROR_REASON_OVERLOADED:         soon,
	jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_OVER_SHARE:  soon,
	jobpolicyv1.ErrorReason_ERROR_REASON_UNREAD_ANSWERS:     soon,
	jobpolicyv1.ErrorReason_ERROR_REASON_REQUEST_TOO_SLOW:   soon,
	jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_NOT_ALLOWED: slowly,
	jobpolicyv1.ErrorReason_ERROR_REASON_INTERNAL:           slowly,
}

// A Refusal says why a call gets no answer.
type Refusal struct {
	Code   codes.Code
	Reason jobpolicyv1.ErrorReason
	// Text is for people.
	Text string
	// Metadata is the metadata that the contract lists for the reason.
	Metadata map[string]string
	// Violations are the invalid fields of an invalid request.
	Violations []engine.FieldViolation
}

// Err returns the gRPC status error.
func (r Refusal) Err() error {
	info := &errdetails.ErrorInfo{Reason: jobpolicyv1grpc.ReasonName(r.Reason), Domain: jobpolicyv1grpc.ErrorDomain}
	for key, value := range r.Metadata {
		if info.Metadata == nil {
			info.Metadata = map[string]string{}
		}
		info.Metadata[key] = logging.Text(value, maxMetadataBytes)
	}
	details := []protoadapt.MessageV1{info}
	if delay := retryDelays[r.Reason]; delay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	if len(r.Violations) > 0 {
		details = append(details, badRequest(r.Violations))
	}
	st, err := status.New(r.Code, logging.Text(r.Text, maxDescriptionBytes)).WithDetails(details...)
	if err != nil {
		// Cannot be: the details are valid UTF-8, and the code is not OK.
		return status.Error(codes.Internal, internalText)
	}
	return st.Err()
}

const internalText = "internal error of the policy engine; its log says more"

// ErrInternal is all that a caller is told of a defect.
var ErrInternal = Refusal{
	Code: codes.Internal, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_INTERNAL, Text: internalText,
}.Err()

// FromEngine maps an error of the engine to the code that the contract lists.
func FromEngine(err error) error {
	if invalid, ok := errors.AsType[*engine.InvalidRequestError](err); ok {
		return InvalidArgument(invalid.Violations...)
	}
	if unsupported, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		return Refusal{
			Code: codes.Unimplemented, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_UNSUPPORTED_FIELD,
			Text: unsupported.Error(), Metadata: map[string]string{"field": unsupported.Field},
		}.Err()
	}
	if _, ok := status.FromError(err); ok {
		return err // A test's substitute for the engine made it. The engine itself knows no gRPC.
	}
	return ErrInternal
}

// WithReason returns err if it has a reason, and otherwise the error of the contract that
// fits it. UNAVAILABLE stays without a reason, because it is the transport's.
func WithReason(err error) error {
	if err == nil || status.Code(err) == codes.Unavailable || jobpolicyv1grpc.ReasonOf(err) != jobpolicyv1.ErrorReason_ERROR_REASON_UNSPECIFIED {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return FromContext(err)
	}
	return ErrInternal
}

// FromContext is the error of a call that its caller ended, or whose deadline
// has passed.
func FromContext(err error) error {
	return Refusal{
		Code: status.FromContextError(err).Code(), Reason: jobpolicyv1.ErrorReason_ERROR_REASON_CALL_ENDED, Text: err.Error(),
	}.Err()
}

// TooLarge is the error of a message that is larger than it may be.
func TooLarge(reason jobpolicyv1.ErrorReason, what string, bytes, limit int64) error {
	return Refusal{
		Code: codes.ResourceExhausted, Reason: reason,
		Text:     fmt.Sprintf("%s %d bytes, more than the limit of %d", what, bytes, limit),
		Metadata: map[string]string{"bytes": strconv.FormatInt(bytes, 10), "limit_bytes": strconv.FormatInt(limit, 10)},
	}.Err()
}

// InvalidArgument is INVALID_ARGUMENT with google.rpc.BadRequest. The text gives
// the first violation and the number of others; the details hold as many as fit
// into the trailers of a response. There must be at least one.
func InvalidArgument(violations ...engine.FieldViolation) error {
	return Refusal{
		Code: codes.InvalidArgument, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_INVALID_REQUEST,
		Text: invalidText(violations), Violations: violations,
	}.Err()
}

func badRequest(violations []engine.FieldViolation) *errdetails.BadRequest {
	bad := &errdetails.BadRequest{}
	size := 0
	for _, v := range violations {
		fv := &errdetails.BadRequest_FieldViolation{
			Field: logging.Text(v.Field, maxDescriptionBytes), Description: logging.Text(v.Description, maxDescriptionBytes),
		}
		if size += proto.Size(fv); size > maxDetailBytes {
			break
		}
		bad.FieldViolations = append(bad.FieldViolations, fv)
	}
	return bad
}

func invalidText(violations []engine.FieldViolation) string {
	first := strings.TrimPrefix(violations[0].Field+": "+violations[0].Description, ": ")
	text := logging.Text("invalid request: "+first, maxDescriptionBytes-len(" (and 1000000 more)"))
	if others := len(violations) - 1; others > 0 {
		text += fmt.Sprintf(" (and %d more)", others)
	}
	return text
}

// FromContextOf returns FromContext of ctx's error, or nil if ctx is not done.
func FromContextOf(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return FromContext(err)
	}
	return nil
}
