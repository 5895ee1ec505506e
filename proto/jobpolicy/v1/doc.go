// Package jobpolicyv1 is the contract between a controller that runs Jobs and the
// policy engine: a snapshot of a Job goes in, a decision comes out. It is
// generated from the proto files beside it, whose comments are the contract's
// text. Begin with DecideJobRequest and DecideJobResponse.
package jobpolicyv1
