/* Binds each connection of a process to the loopback network to one address: LD_PRELOAD it; SOURCE_SHIM names the address.
 *
 * Then a network of the test knows the process that opened a connection.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

int connect(int socket, const struct sockaddr *target, socklen_t length) {
  static int (*real_connect)(int, const struct sockaddr *, socklen_t);
  if (!real_connect) *(void **)&real_connect = dlsym(RTLD_NEXT, "connect");
  const char *address = getenv("SOURCE_SHIM");
  const struct sockaddr_in *to = (const struct sockaddr_in *)target;
  if (address && target->sa_family == AF_INET && ntohl(to->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) {
    struct sockaddr_in from = {.sin_family = AF_INET};
    int on = 1;
    setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    /* A socket that is bound already stays as it is. */
    if (inet_pton(AF_INET, address, &from.sin_addr) == 1) bind(socket, (struct sockaddr *)&from, sizeof from);
  }
  return real_connect(socket, target, length);
}
