// Command consumer has the client of the contract, and nothing else of jobpolicy.
package main

import (
	"fmt"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

func main() {
	conn, err := grpc.NewClient("dns:///localhost:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	_ = jobpolicyv1grpc.NewPolicyServiceClient(conn)
	fmt.Println(jobpolicyv1grpc.PolicyService_ServiceDesc.ServiceName)
}
