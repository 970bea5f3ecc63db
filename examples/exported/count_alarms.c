/* A machine that exactstate exported, as a library in a C program: how often does it output this word?

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
uint32_t machine_readout(uint32_t state, uint32_t symbol);
int64_t machine_find(const char *text, size_t length);

int main(int count, char **arguments) {
    char symbol[256];
    uint32_t state = 0;
    unsigned long matches = 0;
    while (scanf("%255s", symbol) == 1) {
        const int64_t id = machine_find(symbol, strlen(symbol));
        if (id < 0) {
            fprintf(stderr, "unknown symbol %s\n", symbol);
            return 2;
        }
        const machine_name *output = &machine_output[machine_readout(state, (uint32_t)id)];
        matches += count > 1 && strlen(arguments[1]) == output->length && !memcmp(output->text, arguments[1], output->length);
        state = machine_step(state, (uint32_t)id);
    }
    printf("%lu\n", matches);
    return 0;
}
