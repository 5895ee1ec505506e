// Package jobpolicyv1grpc holds the client and the server side of the policy
// service. It is separate from the messages (package jobpolicyv1) so that the
// engine, which needs only those, does not link gRPC.
package jobpolicyv1grpc
