// Command flyteadmin is a stand-in for FlyteAdmin: its gRPC services in memory, over Flyte's own compiler,
// workflow builder and storage. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/flyteorg/flyte/flytestdlib/contextutils"
	"github.com/flyteorg/flyte/flytestdlib/promutils"
	"github.com/flyteorg/flyte/flytestdlib/promutils/labeled"
)

func init() {
	// Flyte's storage has metrics by these keys and panics without them.
	labeled.SetMetricKeys(contextutils.ProjectKey, contextutils.DomainKey)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "flyteadmin:", err)
		os.Exit(1)
	}
}

func run() error {
	bucket := bucketConfig{}
	listen := flag.String("listen", "127.0.0.1:8089", "address to serve gRPC on, without TLS")
	kubeconfig := flag.String("kubeconfig", "", "file that says how to reach the cluster")
	configFile := flag.String("config", "", "YAML file with settings of FlyteAdmin's (default: FlyteAdmin's defaults)")
	flag.StringVar(&bucket.endpoint, "s3-endpoint", "", "URL of the S3 server")
	flag.StringVar(&bucket.accessKey, "s3-access-key", "", "access key of the S3 server")
	flag.StringVar(&bucket.secretKey, "s3-secret-key", "", "secret key of the S3 server")
	flag.StringVar(&bucket.bucket, "bucket", "flyte", "bucket for metadata and uploads; made where it is missing")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if *kubeconfig == "" || bucket.endpoint == "" {
		return fmt.Errorf("--kubeconfig and --s3-endpoint are required")
	}
	settings, err := loadConfig(*configFile)
	if err != nil {
		return err
	}
	cluster, err := newCluster(*kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", *kubeconfig, err)
	}
	data, err := newDataStore(bucket, promutils.NewScope("flyteadmin"))
	if err != nil {
		return fmt.Errorf("bucket %s at %s: %w", bucket.bucket, bucket.endpoint, err)
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := newServer(settings, data, cluster)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() {
		<-ctx.Done()
		log.Print("stopping: all that was registered and launched is lost")
		// Open streams must not hold up the end.
		time.AfterFunc(5*time.Second, server.Stop)
		server.GracefulStop()
	}()
	log.Printf("FlyteAdmin stand-in (rules of %s) on %s; nothing is kept after exit", version, listener.Addr())
	return server.Serve(listener)
}
