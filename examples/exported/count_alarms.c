/* A machine that detent wrote, as a library in a C program: how often does it say this word?

   cc -DMACHINE_WITHOUT_MAIN machine.c count_alarms.c -o count_alarms
   printf 'push coin push push' | ./count_alarms locked */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *text;
    size_t length;
} machine_name;

extern const machine_name machine_output[];
uint32_t machine_step(uint32_t state, uint32_t symbol);
uint32_t machine_say(uint32_t state, uint32_t symbol);
int64_t machine_find(const char *text, size_t length);

int main(int count, char **arguments) {
    char symbol[256];
    uint32_t state = 0;
    unsigned long found = 0;
    while (scanf("%255s", symbol) == 1) {
        const int64_t read = machine_find(symbol, strlen(symbol));
        if (read < 0) {
            fprintf(stderr, "unknown symbol %s\n", symbol);
            return 2;
        }
        const machine_name *said = &machine_output[machine_say(state, (uint32_t)read)];
        found += count > 1 && strlen(arguments[1]) == said->length && !memcmp(said->text, arguments[1], said->length);
        state = machine_step(state, (uint32_t)read);
    }
    printf("%lu\n", found);
    return 0;
}
