"""OPC UA beyond jobs: discovery, push of certificates, reverse connect, redundancy."""
